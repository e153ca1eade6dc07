'use client';

import { isServiceError, uploadImage } from 'account-client';
import { useSessionStore, useUser } from 'account-client/react';
import { useState } from 'react';

export function ProfilePage() {
  const { client, set } = useSessionStore();
  const user = useUser();
  const [problem, setProblem] = useState('');
  if (!user) return null;

  /** Refused calls say why at a field, or in general. */
  const change = async (form: FormData) => {
    setProblem('');
    try {
      const picture = form.get('picture');
      const image =
        picture instanceof File && picture.size > 0 && (await uploadImage(client, picture, { type: 'avatar' }));
      const changes = { name: `${form.get('name')}`, ...(image && { avatar: image.url }) };
      set((await client.profile.update.mutate(changes)).user);
    } catch (error) {
      if (isServiceError(error)) setProblem(Object.values(error.details ?? {})[0]?.message ?? error.message);
      else setProblem('Please try again shortly');
    }
  };

  return (
    <form action={change}>
      <h1>Welcome, {user.name}</h1>
      <label>
        Name <input name="name" autoComplete="name" defaultValue={user.name} key={user.name} />
      </label>
      <label>
        Picture <input name="picture" type="file" accept="image/jpeg,image/png" />
      </label>
      <button type="submit">Save</button>
      {problem && <p role="alert">{problem}</p>}
    </form>
  );
}
