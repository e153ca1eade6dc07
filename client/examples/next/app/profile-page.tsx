'use client';

import { isServiceError, uploadImage } from 'account-client';
import { useSessionStore, useUser } from 'account-client/react';
import { type FormEvent, useState } from 'react';

export function ProfilePage() {
  const { client, set } = useSessionStore();
  const user = useUser();
  const [problem, setProblem] = useState('');
  if (!user) return null;

  /** Refused calls say why at a field, or in general. No `action`: React empties its form even then. */
  const change = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const typed = new FormData(form);
    setProblem('');
    try {
      const picture = typed.get('picture');
      const image =
        picture instanceof File && picture.size > 0 && (await uploadImage(client, picture, { type: 'avatar' }));
      const changes = { name: `${typed.get('name')}`, ...(image && { avatar: image.url }) };
      set((await client.profile.update.mutate(changes)).user);
      form.reset();
    } catch (error) {
      if (isServiceError(error)) setProblem(Object.values(error.details ?? {})[0]?.message ?? error.message);
      else setProblem('Please try again shortly');
    }
  };

  return (
    <form onSubmit={change}>
      <h1>Welcome, {user.name}</h1>
      <label>
        Name <input name="name" autoComplete="name" defaultValue={user.name} />
      </label>
      <label>
        Picture <input name="picture" type="file" accept="image/jpeg,image/png" />
      </label>
      <button type="submit">Save</button>
      {problem && <p role="alert">{problem}</p>}
    </form>
  );
}
