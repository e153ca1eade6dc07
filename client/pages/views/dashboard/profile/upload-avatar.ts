import { uploadImage } from 'account-client';
import { api } from '../../../api.ts';

/** Stores a picture and resolves to its URL. `onProgress` gets the share that has been sent, 0 to 1. */
export async function uploadAvatar(
  file: File,
  { signal, onProgress }: { signal: AbortSignal; onProgress(share: number): void },
): Promise<string> {
  const shareOf = ({ loaded, total }: { loaded: number; total: number }) => onProgress(total > 0 ? loaded / total : 0);
  return (await uploadImage(api, file, { type: 'avatar', signal, onProgress: shareOf })).url;
}
