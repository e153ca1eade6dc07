import { text } from '../../language/texts.ts';
import { CopyButton } from '../dashboard/security/recovery-codes.tsx';

interface Props {
  secret: string;
  /** What it is for. */
  purpose: string;
  /** When the former secret ends, formatted. */
  formerUntil?: string;
}

/** A secret that the service returns only once. */
export function Secret({ secret, purpose, formerUntil }: Props) {
  const hints = [purpose, text('admin.secret.once')];
  if (formerUntil !== undefined) hints.push(text('admin.secret.former', { date: formerUntil }));
  return (
    <div class="stack">
      <p>
        {text('admin.secret.label')}: <code>{secret}</code>
      </p>
      <p class="hint">{hints.join(' ')}</p>
      <CopyButton content={secret}>{text('admin.secret.copy')}</CopyButton>
    </div>
  );
}
