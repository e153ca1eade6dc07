import type { ComponentChildren, RefObject } from 'preact';
import { useState } from 'preact/hooks';
import { imageTypes, MAX_IMAGE_BYTES } from '../../../../../server/shared/image-limits.ts';
import { api, type Profile, refusalIn, uploadAvatar } from '../../../api.ts';
import { Button } from '../../../form/form.tsx';
import { sentenceFor } from '../../../form/use-form.ts';
import { percent, size } from '../../../language/in-readers-language.ts';
import { text } from '../../../language/texts.ts';
import { settings } from '../../../settings.ts';
import { sessionEnded } from '../../session-ended.tsx';

interface Props {
  profile: Profile;
  onChange(profile: Profile): void;
  /** The running upload, for callers that must wait for it. */
  picture: RefObject<Promise<void>>;
}

interface Sending {
  file: File;
  /** A data: URL; undefined until the file is read. */
  preview?: string;
  /** 0 to 1; 1 while the service converts the picture. */
  share: number;
}

/** Uploads a chosen picture and saves it to the profile in one step, or removes the picture. */
function useAvatar({ onChange, picture }: Pick<Props, 'onChange' | 'picture'>) {
  const [sending, setSending] = useState<Sending>();
  const [error, setError] = useState<ComponentChildren>();
  const [message, setMessage] = useState('');
  const [isRemoving, setRemoving] = useState(false);

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
      const refusal = refusalIn(failure);
      setError(sessionEnded(refusal)?.message ?? refusal.details['file'] ?? sentenceFor(refusal));
    }
  };

  const send = (file: File) =>
    attempt(async () => {
      setSending({ file, share: 0 });
      try {
        const preview = await dataUrl(file);
        setSending({ file, preview, share: 0 });
        const url = await uploadAvatar(file, (share) => setSending({ file, preview, share }));
        await save(url, text('dashboard.avatar.saved'));
      } finally {
        setSending(undefined);
      }
    });

  const choose = (input: HTMLInputElement) => {
    const [file] = input.files ?? [];
    if (!file || sending) return;
    const refusal = refusalOf(file);
    setError(refusal);
    setMessage('');
    if (!refusal) picture.current = send(file);
  };

  const remove = async () => {
    setRemoving(true);
    await attempt(() => save('', text('dashboard.avatar.removed')));
    setRemoving(false);
  };

  return { sending, error, message, isRemoving, choose, remove };
}

/** The picture with its input. A chosen file is shown immediately, with the progress of its upload. */
export function AvatarPicker({ profile, onChange, picture }: Props) {
  const { sending, error, message, isRemoving, choose, remove } = useAvatar({ onChange, picture });

  return (
    <>
      <Picture name={profile.name} src={sending?.preview ?? profile.avatar} />
      <div class="stack">
        <p class="name">{profile.name}</p>
        <div class="field">
          <label for="avatar">{text('dashboard.avatar.label')}</label>
          <input
            id="avatar"
            type="file"
            accept={imageTypes.join(',')}
            aria-invalid={error ? 'true' : undefined}
            aria-describedby={error ? 'avatar-hint avatar-error' : 'avatar-hint'}
            onChange={(event) => choose(event.currentTarget)}
          />
          <p class="hint" id="avatar-hint">
            {text('dashboard.avatar.hint', { limit: size(MAX_IMAGE_BYTES) })}
          </p>
          {error && (
            <p class="error" id="avatar-error" role="alert">
              {error}
            </p>
          )}
        </div>
        {sending && <Progress {...sending} />}
        <p class="notice-line" role="status">
          {message}
        </p>
        {profile.avatar && !sending && (
          <Button kind="secondary" isBusy={isRemoving} busy={text('dashboard.removing')} onClick={() => void remove()}>
            {text('dashboard.avatar.remove')}
          </Button>
        )}
      </div>
    </>
  );
}

function Progress({ file, share }: Sending) {
  return (
    <div class="progress">
      <progress aria-label={text('dashboard.avatar.upload')} max={1} value={share} />
      <span>
        {share < 1
          ? text('dashboard.avatar.uploading', { share: percent(share), size: size(file.size) })
          : text('dashboard.avatar.almostDone')}
      </span>
    </div>
  );
}

/** The picture, or the first letter of the name if it cannot be shown. */
function Picture({ name, src }: { name: string; src: string }) {
  const [broken, setBroken] = useState<string>();
  if (!src || src === broken) {
    return (
      <span class="avatar" aria-hidden="true">
        {[...name][0]?.toLocaleUpperCase()}
      </span>
    );
  }
  return (
    <img
      class="avatar"
      src={nearby(src)}
      alt=""
      width="96"
      height="96"
      // Otherwise the host of the picture, maybe a provider, would learn which user views which page.
      referrerpolicy="no-referrer"
      onError={() => setBroken(src)}
    />
  );
}

/** Files of the service are loaded from the host of this page, because the service may have several hosts. */
const nearby = (address: string) =>
  address.startsWith(`${settings.appUrl}/`) ? address.slice(settings.appUrl.length) : address;

/** The reason why the service would refuse the file: then it is not sent. */
function refusalOf({ type, size: bytes }: File): string | undefined {
  if (!imageTypes.some((known) => known === type)) return text('dashboard.avatar.wrongType');
  return bytes > MAX_IMAGE_BYTES
    ? text('dashboard.avatar.tooLarge', { size: size(bytes), limit: size(MAX_IMAGE_BYTES) })
    : undefined;
}

/** For the preview: the Content Security Policy allows data: URLs, but no blob: URLs. */
function dataUrl(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
