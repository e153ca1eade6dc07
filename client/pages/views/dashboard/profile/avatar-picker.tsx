import { useState } from 'preact/hooks';
import { Button } from '../../../form/form.tsx';
import { text } from '../../../language/texts.ts';
import { settings } from '../../../settings.ts';
import { PictureDialog } from './picture-dialog.tsx';
import { SendingProgress } from './sending-progress.tsx';
import { type AvatarProps, useAvatar } from './use-avatar.ts';
import { useGivenFile } from './use-given-file.ts';

/** The picture with its input. A chosen, dropped or pasted file is cropped in a dialog. */
export function AvatarPicker({ profile, onChange, picture }: AvatarProps) {
  const { opened, sending, error, message, isRemoving, choose, send, cancel, remove } = useAvatar({
    onChange,
    picture,
  });
  const isOver = useGivenFile((file) => void choose(file));
  const ownError = !opened && error;

  return (
    <section class={isOver ? 'card picture over' : 'card picture'}>
      <Picture name={profile.name} src={profile.avatar} />
      <div class="stack">
        <p class="name">{profile.name}</p>
        <div class="field">
          <label for="avatar">{text('dashboard.avatar.label')}</label>
          <input
            id="avatar"
            type="file"
            accept="image/*"
            aria-invalid={ownError ? 'true' : undefined}
            aria-describedby={ownError ? 'avatar-hint avatar-error' : 'avatar-hint'}
            onChange={({ currentTarget: input }) => {
              const [file] = input.files ?? [];
              if (file) void choose(file);
              // The same file can be chosen again.
              input.value = '';
            }}
          />
          <p class="hint" id="avatar-hint">
            {text('dashboard.avatar.hint')}
          </p>
          {ownError && (
            <p class="error" id="avatar-error" role="alert">
              {ownError}
            </p>
          )}
        </div>
        {sending && !opened && (
          <>
            <SendingProgress {...sending} />
            <button type="button" class="secondary" onClick={cancel}>
              {text('common.cancel')}
            </button>
          </>
        )}
        <p class="notice-line" role="status">
          {message}
        </p>
        {profile.avatar && !sending && (
          <Button kind="secondary" isBusy={isRemoving} busy={text('dashboard.removing')} onClick={() => void remove()}>
            {text('dashboard.avatar.remove')}
          </Button>
        )}
      </div>
      {opened && <PictureDialog picture={opened} sending={sending} error={error} onSave={send} onCancel={cancel} />}
    </section>
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
