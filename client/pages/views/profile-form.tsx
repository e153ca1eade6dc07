import type { RefObject } from 'preact';
import { useState } from 'preact/hooks';
import { api, type Profile } from '../api.ts';
import { dropDraft } from '../draft.ts';
import { TextArea, TextField } from '../form/fields.tsx';
import { Button, Form, Notice } from '../form/form.tsx';
import { useForm } from '../form/use-form.ts';
import { number } from '../in-readers-language.ts';
import { sessionEnded } from './session-ended.tsx';

const LONGEST_BIO = 500;

interface Props {
  profile: Profile;
  onChange(profile: Profile): void;
  picture: RefObject<Promise<void>>;
}

const fieldsOf = ({ name, bio, location, website }: Profile) => ({ name, bio, location, website });

export function ProfileForm({ profile, onChange, picture }: Props) {
  const [isSaved, setSaved] = useState(false);
  const draft = `profile:${profile.id}`;
  const { field, values, isBusy, form } = useForm({
    initial: fieldsOf(profile),
    required: { name: 'Please enter your name' },
    draft: { key: draft, names: ['name', 'bio', 'location', 'website'] },
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
        <TextField field={field('name')} label="Name" autocomplete="name" />
        <TextArea
          field={field('bio')}
          label="Bio"
          rows={4}
          hint={`${number([...values.bio].length)} of ${number(LONGEST_BIO)} characters`}
        />
        <TextField field={field('location')} label="Location" autocomplete="address-level2" />
        <TextField
          field={field('website')}
          label="Website"
          type="url"
          autocomplete="url"
          hint="With http:// or https:// in front"
        />
        <Button isBusy={isBusy} busy="Saving …">
          Save
        </Button>
      </Form>
      {isSaved && !isBusy && <Notice>Your profile is saved.</Notice>}
    </>
  );
}
