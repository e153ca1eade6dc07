import { type UploadListOutput, uploadImage } from 'account-client';
import { scalePicture } from 'account-client/editor';
import { useCallback, useEffect, useState } from 'react';
import { accounts, refusalIn } from './accounts.ts';
import { Picture } from './picture.tsx';

/** The pictures of the user, each in a size that fits the page. */
export function Pictures() {
  const [pictures, setPictures] = useState<UploadListOutput['data']>([]);
  const [problem, setProblem] = useState('');

  const load = useCallback(async () => {
    const { data } = await accounts.upload.list.query();
    setPictures(data.filter(({ purpose }) => purpose === 'post'));
  }, []);
  useEffect(() => void load(), [load]);

  const add = async (file: File) => {
    setProblem('');
    try {
      await uploadImage(accounts, await scalePicture(file), { type: 'post' });
      await load();
    } catch (error) {
      const { message, fields } = refusalIn(error);
      setProblem(fields['file'] ?? message);
    }
  };

  return (
    <>
      <h2>Your pictures</h2>
      <label>
        Add one{' '}
        <input
          type="file"
          accept="image/*"
          onChange={({ currentTarget: { files } }) => files?.[0] && void add(files[0])}
        />
      </label>
      {problem && <p role="alert">{problem}</p>}
      {pictures.map((picture) => (
        <p key={picture.key}>
          <Picture picture={picture} alt="A post" sizes="300px" />
        </p>
      ))}
    </>
  );
}
