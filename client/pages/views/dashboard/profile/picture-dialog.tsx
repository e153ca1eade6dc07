import { type Cropper, createCropper, cropPicture, MAX_ZOOM, type Picture } from 'account-client/editor';
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Alert, Button } from '../../../form/form.tsx';
import { percent } from '../../../language/format.ts';
import { text } from '../../../language/texts.ts';
import { SendingProgress } from './sending-progress.tsx';
import type { Sending } from './use-avatar.ts';

interface Props {
  picture: Picture;
  sending: Sending | undefined;
  error: ComponentChildren;
  onSave(file: Promise<File>): void;
  /** Also called by the Escape key. */
  onCancel(): void;
}

/** The chosen picture, to be moved and zoomed within the circle. */
export function PictureDialog({ picture, sending, error, onSave, onCancel }: Props) {
  const { dialog, frame, cropper, zoom } = useCropper(picture);
  const [position, setPosition] = useState('');
  const zoomTo = (value: number) => {
    if (cropper.current) cropper.current.zoom = value;
  };

  return (
    <dialog
      ref={dialog}
      aria-labelledby="crop-title"
      // By the Escape key. The event is late: the dialog may show the next picture, or be removed.
      onClose={({ currentTarget: { open, isConnected } }) => isConnected && !open && onCancel()}
    >
      <div class="stack">
        <h2 id="crop-title">{text('dashboard.avatar.crop')}</h2>
        <div
          ref={frame}
          class="crop"
          role="application"
          aria-label={text('dashboard.avatar.part')}
          aria-describedby="crop-hint"
          inert={sending !== undefined}
          onKeyUp={() => cropper.current && setPosition(positionOf(cropper.current, picture))}
        />
        <p class="unseen" role="status">
          {position}
        </p>
        {sending ? (
          <SendingProgress {...sending} />
        ) : (
          <>
            <p class="hint" id="crop-hint">
              {text('dashboard.avatar.moveHint')}
            </p>
            <Zoom zoom={zoom} onChange={zoomTo} />
          </>
        )}
        {error && <Alert>{error}</Alert>}
        <div class="choices">
          <Button
            isBusy={sending !== undefined}
            busy={text('dashboard.saving')}
            onClick={() => cropper.current && onSave(cropPicture(picture, cropper.current.square))}
          >
            {text('dashboard.avatar.save')}
          </Button>
          <button type="button" class="secondary" onClick={onCancel}>
            {text('common.cancel')}
          </button>
        </div>
      </div>
    </dialog>
  );
}

/** Each step is the same factor. */
const Zoom = ({ zoom, onChange }: { zoom: number; onChange(zoom: number): void }) => (
  <div class="field">
    <label for="zoom">{text('dashboard.avatar.zoom')}</label>
    <input
      id="zoom"
      type="range"
      min={0}
      max={Math.log2(MAX_ZOOM)}
      step={0.05}
      value={Math.log2(zoom)}
      aria-valuetext={percent(zoom)}
      onInput={({ currentTarget: { value } }) => onChange(2 ** Number(value))}
    />
  </div>
);

/** Opens the dialog; closes it before it is removed, so that the focus goes back to where it was. */
function useCropper(picture: Picture) {
  const dialog = useRef<HTMLDialogElement>(null);
  const frame = useRef<HTMLDivElement>(null);
  const cropper = useRef<Cropper>(null);
  const [zoom, setZoom] = useState(1);

  useLayoutEffect(() => {
    const opened = dialog.current;
    if (!opened || !frame.current) return;
    const { bitmap } = picture;
    const created = createCropper(frame.current, bitmap, (changed) => setZoom(changed.zoom));
    cropper.current = created;
    setZoom(1);
    opened.showModal();
    return () => {
      created.stop();
      opened.close();
      bitmap.close();
    };
  }, [picture]);

  return { dialog, frame, cropper, zoom };
}

function positionOf({ square: { x, y, side }, zoom }: Cropper, { bitmap: { width, height } }: Picture): string {
  return text('dashboard.avatar.position', {
    zoom: percent(zoom),
    x: percent((x + side / 2) / width),
    y: percent((y + side / 2) / height),
  });
}
