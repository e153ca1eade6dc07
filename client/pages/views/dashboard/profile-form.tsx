import type { JSX, RefObject } from 'preact';
import { useState } from 'preact/hooks';
import { api, type Profile, type ProfileUpdateInput } from '../../api.ts';
import { dropDraft } from '../../draft.ts';
import { TextArea, TextField } from '../../form/fields.tsx';
import { Button, Form, Notice } from '../../form/form.tsx';
import { type FieldState, useForm } from '../../form/use-form.ts';
import { number } from '../../in-readers-language.ts';
import { sessionEnded } from '../session-ended.tsx';

const LONGEST_BIO = 500;

type Name = Exclude<keyof ProfileUpdateInput, 'avatar'>;

/** Every field that users may change, in the order of the form; AvatarPicker has the avatar. */
const inputs: Record<Name, (props: { field: FieldState }) => JSX.Element> = {
  name: ({ field }) => <TextField field={field} label="Name" autocomplete="name" />,
  bio: ({ field }) => (
    <TextArea
      field={field}
      label="Bio"
      rows={4}
      hint={`${number([...field.value].length)} of ${number(LONGEST_BIO)} characters`}
    />
  ),
  location: ({ field }) => <TextField field={field} label="Location" autocomplete="address-level2" />,
  website: ({ field }) => (
    <TextField field={field} label="Website" type="url" autocomplete="url" hint="With http:// or https:// in front" />
  ),
};

const names = Object.keys(inputs) as Name[];

const fieldsOf = (profile: Profile) =>
  Object.fromEntries(names.map((name) => [name, profile[name]])) as Record<Name, string>;

interface Props {
  profile: Profile;
  onChange(profile: Profile): void;
  picture: RefObject<Promise<void>>;
}

export function ProfileForm({ profile, onChange, picture }: Props) {
  const [isSaved, setSaved] = useState(false);
  const draft = `profile:${profile.id}`;
  const { field, isBusy, form } = useForm({
    initial: fieldsOf(profile),
    required: { name: 'Please enter your name' },
    draft: { key: draft, names },
    async send(typed) {
      setSaved(false);
      await picture.current;
      const { user } = await api.profile.update.mutate(typed);
      dropDraft(draft);
      onChange(user);
      setSaved(true);
      return fieldsOf(user);
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
        <Button isBusy={isBusy} busy="Saving …">
          Save
        </Button>
      </Form>
      {isSaved && !isBusy && <Notice>Your profile is saved.</Notice>}
    </>
  );
}
