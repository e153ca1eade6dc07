import { percent, size } from '../../../language/format.ts';
import { text } from '../../../language/texts.ts';
import type { Sending } from './use-avatar.ts';

export function SendingProgress({ size: bytes, share }: Sending) {
  return (
    <div class="progress">
      <progress aria-label={text('dashboard.avatar.upload')} max={1} value={share} />
      <span>
        {share < 1
          ? bytes && text('dashboard.avatar.uploading', { share: percent(share), size: size(bytes) })
          : text('dashboard.avatar.almostDone')}
      </span>
    </div>
  );
}
