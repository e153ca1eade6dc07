import type { TotpBeginOutput } from 'account-client';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { api } from '../../../api.ts';
import { TextField } from '../../../form/fields.tsx';
import { Button, Form } from '../../../form/form.tsx';
import { useForm } from '../../../form/use-form.ts';
import { markup, text } from '../../../language/texts.ts';
import { sessionEnded } from '../../session-ended.tsx';
import { useRecentCredential } from './recent-credential.tsx';
import { CopyButton } from './recovery-codes.tsx';

interface Props {
  setup: TotpBeginOutput;
  onEnabled(recoveryCodes: string[]): Promise<void>;
  onCancel(): void;
}

/** Shows the secret for the app, which the first code activates. */
export function AppSetup({ setup: { secret, qr }, onEnabled, onCancel }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => heading.current?.focus(), []);
  const { withRecentCredential, question } = useRecentCredential();
  const { field, isBusy, form } = useForm({
    initial: { code: '' },
    required: { code: text('dashboard.appSetup.codeMissing') },
    async send({ code }) {
      await withRecentCredential(
        () => api.totp.enable.mutate({ code }),
        ({ recoveryCodes }) => onEnabled(recoveryCodes),
      );
      return undefined;
    },
    explain: (refusal) =>
      refusal.code === 'INVALID_CODE'
        ? {
            field: 'code',
            message: text('dashboard.appSetup.codeWrong'),
          }
        : sessionEnded(refusal),
  });
  return (
    <section class="question stack" aria-labelledby="app-setup">
      <h3 id="app-setup" ref={heading} tabIndex={-1}>
        {text('dashboard.appSetup.title')}
      </h3>
      <p>{text('dashboard.appSetup.scan')}</p>
      <img class="qr" src={`data:image/svg+xml,${encodeURIComponent(qr)}`} alt={text('dashboard.appSetup.qrCode')} />
      <p id="app-secret">{markup('dashboard.appSetup.secret', { secret: <code>{inGroups(secret)}</code> })}</p>
      <CopyButton content={secret}>{text('dashboard.appSetup.copySecret')}</CopyButton>
      <Form {...form}>
        <TextField
          field={field('code')}
          label={text('dashboard.appSetup.code')}
          hint={text('dashboard.appSetup.codeHint')}
          type="digits"
          autocomplete="one-time-code"
        />
        <div class="choices">
          <Button isBusy={isBusy} busy={text('dashboard.appSetup.turningOn')}>
            {text('dashboard.appSetup.turnOn')}
          </Button>
          <Button kind="secondary" isBusy={false} busy="" onClick={onCancel}>
            {text('common.cancel')}
          </Button>
        </div>
      </Form>
      {question}
    </section>
  );
}

const inGroups = (secret: string): string => secret.match(/.{1,4}/g)?.join(' ') ?? '';
