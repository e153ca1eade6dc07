import type { JSX, RefObject } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { api, type Profile, type ProfileUpdateInput } from '../../../api.ts';
import { TextArea, TextField } from '../../../form/fields.tsx';
import { Button, Form, Notice } from '../../../form/form.tsx';
import {
  changedValues,
  missingFields,
  nameOf,
  OwnField,
  type OwnName,
  textsOf,
  writtenFields,
} from '../../../form/own-fields.tsx';
import { type FieldState, useForm } from '../../../form/use-form.ts';
import { text } from '../../../language/texts.ts';
import { tellOfPasskeys } from '../../../passkeys.ts';
import { dropFromDraft, readDraft } from '../../../session/draft.ts';
import { sessionEnded } from '../../session-ended.tsx';

const MAX_BIO = 500;

type Name = Exclude<keyof ProfileUpdateInput, 'avatar' | 'language' | 'fields'>;

/** All documented fields that users may change, in display order, except the avatar (AvatarPicker). */
const inputs: Record<Name, (props: { field: FieldState }) => JSX.Element> = {
  name: ({ field }) => <TextField field={field} label={text('dashboard.profile.name')} autocomplete="name" />,
  bio: ({ field }) => (
    <TextArea
      field={field}
      label={text('dashboard.profile.bio')}
      rows={4}
      hint={text('dashboard.profile.bioLength', { length: [...field.value].length, limit: MAX_BIO })}
    />
  ),
  location: ({ field }) => (
    <TextField field={field} label={text('dashboard.profile.location')} autocomplete="address-level2" />
  ),
  website: ({ field }) => (
    <TextField
      field={field}
      label={text('dashboard.profile.website')}
      type="url"
      autocomplete="url"
      hint={text('dashboard.profile.websiteHint')}
    />
  ),
};

const names = Object.keys(inputs) as Name[];

type Texts = Record<Name | OwnName, string>;

const fieldsOf = (profile: Profile): Texts => ({
  ...(Object.fromEntries(names.map((name) => [name, profile[name]])) as Record<Name, string>),
  ...textsOf(writtenFields, profile.fields),
});

/** What did not change is not sent: another tab may have changed it. */
const changeOf = (typed: Texts, before: Texts): ProfileUpdateInput => ({
  ...Object.fromEntries(names.filter((name) => typed[name] !== before[name]).map((name) => [name, typed[name]])),
  ...(writtenFields.length > 0 && { fields: changedValues(writtenFields, typed, before) }),
});

interface Props {
  profile: Profile;
  onChange(profile: Profile): void;
  picture: RefObject<Promise<void>>;
}

export function ProfileForm({ profile, onChange, picture }: Props) {
  const [isSaved, setSaved] = useState(false);
  /** Without what was typed. A saved picture brings a newer profile, but not into the fields. */
  const before = useRef(fieldsOf(profile));
  const draft = `profile:${profile.id}`;
  const { field, isBusy, form } = useForm({
    initial: fieldsOf(profile),
    required: { name: text('dashboard.profile.nameMissing'), ...missingFields() },
    draft: { key: draft, names: [...names, ...writtenFields.map(nameOf)] },
    async send(typed) {
      setSaved(false);
      await picture.current;
      const { user } = await api.profile.update.mutate(changeOf(typed, before.current));
      const kept = readDraft(draft);
      dropFromDraft(
        draft,
        Object.entries(typed).flatMap(([name, value]) => (kept[name] === value ? [name] : [])),
      );
      onChange(user);
      if (user.name !== profile.name) void tellOfPasskeys(user);
      setSaved(true);
      before.current = fieldsOf(user);
      return before.current;
    },
    explain: sessionEnded,
  });
  return (
    <>
      <Form {...form}>
        {names.map((name) => {
          const Input = inputs[name];
          return <Input key={name} field={field(name)} />;
        })}
        {writtenFields.map((own) => (
          <OwnField key={own.name} of={own} field={field(nameOf(own))} marksRequired />
        ))}
        <Button isBusy={isBusy} busy={text('dashboard.saving')}>
          {text('dashboard.profile.save')}
        </Button>
      </Form>
      {isSaved && !isBusy && <Notice>{text('dashboard.profile.saved')}</Notice>}
    </>
  );
}
