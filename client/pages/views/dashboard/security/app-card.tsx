import type { TotpBeginOutput, TotpStatusOutput } from 'account-client';
import { useRef, useState } from 'preact/hooks';
import { api } from '../../../api.ts';
import { Button } from '../../../form/form.tsx';
import { useAction } from '../../../form/use-action.ts';
import { date } from '../../../language/format.ts';
import { text } from '../../../language/texts.ts';
import { Outcome, unlessGone } from '../outcome.tsx';
import { AppSetup } from './app-setup.tsx';
import { useRecentCredential } from './recent-credential.tsx';
import { RecoveryCodes } from './recovery-codes.tsx';
import { Row } from './row.tsx';
import type { RowState } from './use-open-row.ts';

/** This many recovery codes or fewer trigger the hint. */
const FEW = 3;

interface Props {
  row: RowState;
  status: TotpStatusOutput;
  email: string;
  /** Resolves once `status` is reloaded. */
  onChange(): Promise<void>;
}

/** The authenticator app and its recovery codes. */
export function AppCard({ row, status, email, onChange }: Props) {
  const { busy, act, ...outcome } = useAction();
  const [setup, setSetup] = useState<TotpBeginOutput>();
  const [codes, setCodes] = useState<string[]>();
  /** Whether the codes are those of an app that was just set up. */
  const [isNew, setNew] = useState(false);
  const heading = useRef<HTMLHeadingElement>(null);
  const { withRecentCredential, question, isAsking } = useRecentCredential();

  const begin = () =>
    act('begin', () =>
      withRecentCredential(
        () => api.totp.begin.mutate(),
        (begun) => {
          setNew(true);
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
        ({ recoveryCodes }) => {
          setNew(false);
          return showCodes(recoveryCodes);
        },
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
    <Row
      row={row}
      icon="phone"
      title={text('dashboard.app.title')}
      state={<State status={status} />}
      action={text(status.enabled ? 'dashboard.security.manage' : 'dashboard.security.setUp')}
      heading={heading}
    >
      <Outcome {...outcome} />
      {!setup && !codes && <p>{text(status.enabled ? 'dashboard.app.onExplained' : 'dashboard.app.offExplained')}</p>}
      {!status.enabled && !setup && !codes && (
        <Button
          isBusy={busy === 'begin'}
          isAsking={isAsking}
          busy={text('common.oneMoment')}
          onClick={() => void begin()}
        >
          {text('dashboard.app.setUp')}
        </Button>
      )}
      {setup && <AppSetup setup={setup} onEnabled={showCodes} onCancel={close} />}
      {codes && <RecoveryCodes codes={codes} email={email} step={isNew ? 3 : undefined} onClose={close} />}
      {status.enabled && !codes && (
        <div class="choices">
          <Button
            kind="secondary"
            isBusy={busy === 'renew'}
            isAsking={isAsking}
            busy={text('dashboard.app.renewing')}
            onClick={() => void renew()}
          >
            {text('dashboard.app.renewCodes')}
          </Button>
          <Button
            kind="secondary"
            isBusy={busy === 'off'}
            isAsking={isAsking}
            busy={text('dashboard.app.turningOff')}
            onClick={() => void turnOff()}
          >
            {text('dashboard.app.turnOff')}
          </Button>
        </div>
      )}
      {question}
    </Row>
  );
}

function State({ status: { enabled, enabledAt, recoveryCodesLeft: left } }: { status: TotpStatusOutput }) {
  if (!enabled || enabledAt === undefined) return <span class="badge">{text('dashboard.app.off')}</span>;
  return (
    <>
      <span class="badge success">{text('dashboard.app.on', { date: date(enabledAt) })}</span>
      <p class={left <= FEW ? 'error' : undefined}>
        {text('dashboard.app.codesLeft', { count: left })}
        {left <= FEW && ` ${text('dashboard.app.fewCodesLeft')}`}
      </p>
    </>
  );
}
