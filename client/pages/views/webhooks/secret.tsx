import { text } from '../../language/texts.ts';
import { CopyButton } from '../dashboard/security/recovery-codes.tsx';

/** A secret that the service returns only once. */
export function Secret({ secret, hint }: { secret: string; hint?: string }) {
  return (
    <div class="stack">
      <p>
        {text('webhooks.secret.label')}: <code>{secret}</code>
      </p>
      <p class="hint">{[text('webhooks.secret.hint'), hint].filter(Boolean).join(' ')}</p>
      <CopyButton content={secret}>{text('webhooks.secret.copy')}</CopyButton>
    </div>
  );
}
