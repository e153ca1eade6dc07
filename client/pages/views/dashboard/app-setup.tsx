import type { TotpBeginOutput } from 'account-client';
import { useEffect, useRef } from 'preact/hooks';
import { api } from '../../api.ts';
import { TextField } from '../../form/fields.tsx';
import { Button, Form } from '../../form/form.tsx';
import { useForm } from '../../form/use-form.ts';
import { sessionEnded } from '../session-ended.tsx';
import { useRecentCredential } from './recent-credential.tsx';
import { CopyButton } from './recovery-codes.tsx';

interface Props {
  setup: TotpBeginOutput;
  onEnabled(recoveryCodes: string[]): Promise<void>;
  onCancel(): void;
}

/** The secret for the app, which a first code turns on. */
export function AppSetup({ setup: { secret, qr }, onEnabled, onCancel }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  const { withRecentCredential, question } = useRecentCredential();
  const { field, isBusy, form } = useForm({
    initial: { code: '' },
    required: { code: 'Please enter the code that the app shows' },
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
            message:
              'This code is not right. Please enter the next one that the app shows, and let your phone set its clock by itself. After ten minutes, begin again.',
          }
        : sessionEnded(refusal),
  });
  return (
    <section class="question stack" aria-labelledby="app-setup">
      <h3 id="app-setup" ref={heading} tabIndex={-1}>
        Set up your app
      </h3>
      <p>Scan this with an authenticator app:</p>
      <img class="qr" src={`data:image/svg+xml,${encodeURIComponent(qr)}`} alt="QR code with the secret for your app" />
      <p id="app-secret">
        Or enter this secret in it: <code>{inGroups(secret)}</code>
      </p>
      <CopyButton text={secret}>Copy secret</CopyButton>
      <Form {...form}>
        <TextField
          field={field('code')}
          label="Code that the app shows"
          hint="Six digits."
          type="digits"
          autocomplete="one-time-code"
        />
        <div class="choices">
          <Button isBusy={isBusy} busy="Turning on …">
            Turn on
          </Button>
          <Button kind="secondary" isBusy={false} busy="" onClick={onCancel}>
            Cancel
          </Button>
        </div>
      </Form>
      {question}
    </section>
  );
}

const inGroups = (secret: string): string => secret.match(/.{1,4}/g)?.join(' ') ?? '';
