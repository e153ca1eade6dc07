import type { TotpBeginOutput, TotpStatusOutput } from 'account-client';
import { useRef, useState } from 'preact/hooks';
import { api } from '../../../api.ts';
import { Button } from '../../../form/form.tsx';
import { useAction } from '../../../form/use-action.ts';
import { date } from '../../../language/in-readers-language.ts';
import { text } from '../../../language/texts.ts';
import { Outcome, unlessGone } from '../outcome.tsx';
import { AppSetup } from './app-setup.tsx';
import { useRecentCredential } from './recent-credential.tsx';
import { RecoveryCodes } from './recovery-codes.tsx';

/** This many recovery codes or fewer trigger the hint. */
const FEW = 3;

interface Props {
  status: TotpStatusOutput;
  email: string;
  /** Resolves once `status` is reloaded. */
  onChange(): Promise<void>;
}

/** The authenticator app and its recovery codes. */
export function AppCard({ status, email, onChange }: Props) {
  const { busy, act, ...outcome } = useAction();
  const [setup, setSetup] = useState<TotpBeginOutput>();
  const [codes, setCodes] = useState<string[]>();
  const heading = useRef<HTMLHeadingElement>(null);
  const { withRecentCredential, question } = useRecentCredential();

  const begin = () =>
    act('begin', () =>
      withRecentCredential(
        () => api.totp.begin.mutate(),
        (begun) => {
          setSetup(begun);
          return undefined;
        },
      ),
    );

  const showCodes = async (recoveryCodes: string[]) => {
    setSetup(undefined);
    setCodes(recoveryCodes);
    await onChange();
    return undefined;
  };

  const renew = () =>
    act('renew', () =>
      withRecentCredential(
        () => api.recoveryCodes.renew.mutate(),
        ({ recoveryCodes }) => showCodes(recoveryCodes),
      ),
    );

  const turnOff = () =>
    act('off', () =>
      withRecentCredential(
        () => unlessGone(api.totp.disable.mutate()),
        async () => {
          setCodes(undefined);
          await onChange();
          // The pressed button is gone.
          heading.current?.focus();
          return text('dashboard.app.turnedOff');
        },
      ),
    );

  /** For when the content is gone, with the button that closed it. */
  const close = () => {
    setSetup(undefined);
    setCodes(undefined);
    heading.current?.focus();
  };

  return (
    <section class="card" aria-labelledby="authenticator-app">
      <h2 id="authenticator-app" ref={heading} tabIndex={-1}>
        {text('dashboard.app.title')}
      </h2>
      <div class="stack">
        <Outcome {...outcome} />
        <Status status={status} />
        {!status.enabled && !setup && (
          <Button
            kind="secondary"
            isBusy={busy === 'begin'}
            busy={text('common.oneMoment')}
            onClick={() => void begin()}
          >
            {text('dashboard.app.setUp')}
          </Button>
        )}
        {setup && <AppSetup setup={setup} onEnabled={showCodes} onCancel={close} />}
        {codes && <RecoveryCodes codes={codes} email={email} onClose={close} />}
        {status.enabled && (
          <div class="choices">
            <Button
              kind="secondary"
              isBusy={busy === 'renew'}
              busy={text('dashboard.app.renewing')}
              onClick={() => void renew()}
            >
              {text('dashboard.app.renewCodes')}
            </Button>
            <Button
              kind="secondary"
              isBusy={busy === 'off'}
              busy={text('dashboard.app.turningOff')}
              onClick={() => void turnOff()}
            >
              {text('dashboard.app.turnOff')}
            </Button>
          </div>
        )}
        {question}
      </div>
    </section>
  );
}

function Status({ status: { enabled, enabledAt, recoveryCodesLeft: left } }: { status: TotpStatusOutput }) {
  if (!enabled || enabledAt === undefined) {
    return <p>{text('dashboard.app.off')}</p>;
  }
  return (
    <>
      <p>{text('dashboard.app.on', { date: date(enabledAt) })}</p>
      <p class={left <= FEW ? 'error' : undefined}>
        {text('dashboard.app.codesLeft', { count: left })}
        {left <= FEW && ` ${text('dashboard.app.fewCodesLeft')}`}
      </p>
    </>
  );
}
