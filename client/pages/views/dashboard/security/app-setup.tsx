import type { TotpBeginOutput } from 'account-client';
import { useState } from 'preact/hooks';
import { api } from '../../../api.ts';
import { CodeField } from '../../../form/code-field.tsx';
import { Button, Form } from '../../../form/form.tsx';
import { useForm } from '../../../form/use-form.ts';
import { markup, text } from '../../../language/texts.ts';
import { sessionEnded } from '../../session-ended.tsx';
import { useRecentCredential } from './recent-credential.tsx';
import { CopyButton } from './recovery-codes.tsx';
import { Step } from './step.tsx';

interface Props {
  setup: TotpBeginOutput;
  onEnabled(recoveryCodes: string[]): Promise<void>;
  onCancel(): void;
}

/** Sets up an app in two steps, its secret and its first code. The third step are the recovery codes. */
export function AppSetup(props: Props) {
  const [step, setStep] = useState<'scan' | 'code'>('scan');
  return step === 'scan' ? (
    <Scan {...props} onNext={() => setStep('code')} />
  ) : (
    <FirstCode {...props} onBack={() => setStep('scan')} />
  );
}

function Scan({ setup: { secret, qr }, onCancel, onNext }: Props & { onNext(): void }) {
  return (
    <Step number={1} title={text('dashboard.appSetup.title')}>
      <p>{text('dashboard.appSetup.scan')}</p>
      <img class="qr" src={`data:image/svg+xml,${encodeURIComponent(qr)}`} alt={text('dashboard.appSetup.qrCode')} />
      <div id="app-secret">
        {markup('dashboard.appSetup.secret', { secret: <code class="large">{inGroups(secret)}</code> })}
      </div>
      <CopyButton content={secret}>{text('dashboard.appSetup.copySecret')}</CopyButton>
      <div class="choices">
        <Button isBusy={false} busy="" onClick={onNext}>
          {text('dashboard.appSetup.next')}
        </Button>
        <Button kind="quiet" isBusy={false} busy="" onClick={onCancel}>
          {text('common.cancel')}
        </Button>
      </div>
    </Step>
  );
}

function FirstCode({ onEnabled, onBack }: Props & { onBack(): void }) {
  const { withRecentCredential, question, isAsking } = useRecentCredential();
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
    explain(refusal) {
      if (refusal.code !== 'INVALID_CODE') return sessionEnded(refusal);
      field('code').onInput('');
      return { field: 'code', message: text('dashboard.appSetup.codeWrong') };
    },
  });
  return (
    <Step number={2} title={text('dashboard.appSetup.codeTitle')}>
      <Form {...form}>
        <CodeField
          field={field('code')}
          label={text('dashboard.appSetup.code')}
          submit={() => form.element.current?.requestSubmit()}
        />
        <div class="choices">
          <Button isBusy={isBusy} isAsking={isAsking} busy={text('dashboard.appSetup.turningOn')}>
            {text('dashboard.appSetup.turnOn')}
          </Button>
          <Button kind="quiet" isBusy={false} busy="" onClick={onBack}>
            {text('dashboard.appSetup.back')}
          </Button>
        </div>
      </Form>
      {question}
    </Step>
  );
}

const inGroups = (secret: string): string => secret.match(/.{1,4}/g)?.join(' ') ?? '';
