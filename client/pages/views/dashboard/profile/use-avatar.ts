import { isNetworkError, isServiceError, isTimeoutError } from 'account-client';
import { openPicture, type Picture } from 'account-client/editor';
import type { ComponentChildren, RefObject } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { MAX_IMAGE_BYTES } from '../../../../../server/shared/image-limits.ts';
import { api, type Profile, refusalIn } from '../../../api.ts';
import { sentenceFor } from '../../../form/use-form.ts';
import { size } from '../../../language/format.ts';
import { text } from '../../../language/texts.ts';
import { sessionEnded } from '../../session-ended.tsx';
import { uploadAvatar } from './upload-avatar.ts';

export interface AvatarProps {
  profile: Profile;
  onChange(profile: Profile): void;
  /** The running upload, for callers that must wait for it. */
  picture: RefObject<Promise<void>>;
}

export interface Sending {
  /** Bytes; undefined until the picture is cut. */
  size?: number;
  /** 0 to 1; 1 while the service converts the picture. */
  share: number;
  /** Undefined once the picture is stored and only the profile is saved. */
  cancel?: () => void;
}

/** Opens a chosen file to be cropped, uploads it and saves it to the profile, or removes the picture. */
export function useAvatar({ onChange, picture }: Omit<AvatarProps, 'profile'>) {
  const [opened, setOpened] = useState<Picture>();
  const [sending, setSending] = useState<Sending>();
  const [error, setError] = useState<ComponentChildren>();
  const [message, setMessage] = useState('');
  const [isRemoving, setRemoving] = useState(false);
  const isSending = useRef(false);

  const save = async (avatar: string, notice: string) => {
    onChange((await api.profile.update.mutate({ avatar })).user);
    setMessage(notice);
  };

  const attempt = async (work: () => Promise<void>) => {
    setError(undefined);
    setMessage('');
    try {
      await work();
    } catch (failure) {
      setError(messageFor(failure));
    }
  };

  const upload = async (prepared: File | Promise<File>) => {
    const cancelled = new AbortController();
    const cancel = () => cancelled.abort();
    setSending({ share: 0, cancel });
    isSending.current = true;
    try {
      const file = await prepared;
      const { signal } = cancelled;
      const onProgress = (share: number) => setSending({ size: file.size, share, cancel });
      const url = await uploadAvatar(file, { signal, onProgress });
      signal.throwIfAborted();
      setSending({ size: file.size, share: 1 });
      await save(url, text('dashboard.avatar.saved'));
    } catch (failure) {
      if (!cancelled.signal.aborted) throw failure;
      setMessage(text('dashboard.avatar.cancelled'));
    } finally {
      isSending.current = false;
      setSending(undefined);
    }
    setOpened(undefined);
  };

  const send = (prepared: File | Promise<File>) => {
    picture.current = attempt(() => upload(prepared));
  };

  const choose = async (file: File) => {
    if (isSending.current) return;
    const wrongType = file.type !== '' && !file.type.startsWith('image/') && text('dashboard.avatar.wrongType');
    setError(wrongType);
    setMessage('');
    if (wrongType) return;
    const decoded = await openPicture(file);
    // Meanwhile the picture before was saved.
    if (isSending.current) return decoded?.bitmap.close();
    setOpened(decoded);
    if (decoded) return;
    // The service knows best what it takes, and says why not.
    if (file.size > MAX_IMAGE_BYTES) setError(tooLarge(file));
    else send(file);
  };

  const remove = async () => {
    setRemoving(true);
    await attempt(() => save('', text('dashboard.avatar.removed')));
    setRemoving(false);
  };

  const cancel = () => {
    sending?.cancel?.();
    setError(undefined);
    setOpened(undefined);
  };

  return { opened, sending, error, message, isRemoving, choose, send, cancel, remove };
}

function messageFor(failure: unknown): ComponentChildren {
  // The browser cannot cut the picture, such as without memory.
  if (!(isServiceError(failure) || isNetworkError(failure) || isTimeoutError(failure)))
    return text('common.unreachable.title');
  const refusal = refusalIn(failure);
  return sessionEnded(refusal)?.message ?? refusal.details['file'] ?? sentenceFor(refusal);
}

const tooLarge = (file: File): string =>
  text('dashboard.avatar.tooLarge', { size: size(file.size), limit: size(MAX_IMAGE_BYTES) });
