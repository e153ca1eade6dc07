import { useRef } from 'preact/hooks';
import { Picture } from '../../../account-menu/picture.tsx';
import { Button, Notice } from '../../../form/form.tsx';
import { text } from '../../../language/texts.ts';
import { PictureDialog } from './picture-dialog.tsx';
import { SendingProgress } from './sending-progress.tsx';
import { type AvatarProps, useAvatar } from './use-avatar.ts';
import { useGivenFile } from './use-given-file.ts';
import '../../../styles/picture.css';

/** The picture with its input. A chosen, dropped or pasted file is cropped in a dialog. */
export function AvatarPicker({ profile, onChange, picture }: AvatarProps) {
  const { opened, sending, error, message, isRemoving, choose, send, cancel, remove } = useAvatar({
    onChange,
    picture,
  });
  const isOver = useGivenFile((file) => void choose(file));
  const ownError = !opened && error;
  const input = useRef<HTMLInputElement>(null);
  const removeIt = async () => {
    await remove();
    // The pressed button is gone.
    if (document.activeElement === document.body) input.current?.focus();
  };

  return (
    <section class={isOver ? 'card picture over' : 'card picture'}>
      <Picture class="avatar" size={96} name={profile.name} src={profile.avatar} />
      <div class="stack">
        <p class="name">{profile.name}</p>
        <div class="field">
          <input
            id="avatar"
            ref={input}
            class="unseen"
            type="file"
            accept="image/*"
            aria-invalid={ownError ? 'true' : undefined}
            aria-describedby={ownError ? 'avatar-hint avatar-error' : 'avatar-hint'}
            onChange={({ currentTarget: field }) => {
              const [file] = field.files ?? [];
              if (file) void choose(file);
              // The same file can be chosen again.
              field.value = '';
            }}
          />
          <label class="file" for="avatar">
            {text('dashboard.avatar.label')}{' '}
            <span class="button secondary small">{text('dashboard.avatar.choose')}</span>
          </label>
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
        {message && <Notice>{message}</Notice>}
        {profile.avatar && !sending && (
          <Button
            kind="secondary"
            isBusy={isRemoving}
            busy={text('dashboard.removing')}
            onClick={() => void removeIt()}
          >
            {text('dashboard.avatar.remove')}
          </Button>
        )}
      </div>
      {opened && <PictureDialog picture={opened} sending={sending} error={error} onSave={send} onCancel={cancel} />}
    </section>
  );
}
