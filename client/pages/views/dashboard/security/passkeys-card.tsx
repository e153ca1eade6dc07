import type { PasskeysListOutput } from 'account-client';
import { useEffect, useRef, useState } from 'preact/hooks';
import { api } from '../../../api.ts';
import { TextField } from '../../../form/fields.tsx';
import { Button, Form } from '../../../form/form.tsx';
import { useAction } from '../../../form/use-action.ts';
import { useForm } from '../../../form/use-form.ts';
import { Icon } from '../../../icons/icon.tsx';
import { date, dateTime } from '../../../language/format.ts';
import { text } from '../../../language/texts.ts';
import { addPasskey, hasPasskeys, tellOfPasskeys } from '../../../passkeys.ts';
import { sessionEnded } from '../../session-ended.tsx';
import { Outcome, unlessGone } from '../outcome.tsx';
import { useRecentCredential } from './recent-credential.tsx';
import { Row } from './row.tsx';
import type { RowState } from './use-open-row.ts';

type Passkey = PasskeysListOutput['data'][number];

interface Props {
  row: RowState;
  passkeys: Passkey[];
  /** Resolves once `passkeys` is reloaded. */
  onChange(): Promise<void>;
}

/** The user's passkeys. A new one is named after its authenticator and can be renamed. */
export function PasskeysCard({ row, passkeys, onChange }: Props) {
  /** `busy` is the id being removed, or `add`. */
  const { busy, act, ...outcome } = useAction();
  const [renaming, setRenaming] = useState('');
  const heading = useRef<HTMLHeadingElement>(null);
  const { withRecentCredential, question, isAsking } = useRecentCredential();

  const changed = async () => {
    await onChange();
    void tellOfPasskeys();
  };

  const add = () =>
    act('add', () =>
      withRecentCredential(addPasskey, async () => {
        await changed();
        return text('dashboard.passkeys.added');
      }),
    );

  const remove = ({ id, name }: Passkey) =>
    act(id, () =>
      withRecentCredential(
        () => unlessGone(api.passkeys.remove.mutate({ id })),
        async () => {
          await changed();
          // The pressed button is gone.
          heading.current?.focus();
          return text('dashboard.passkeys.removed', { name });
        },
      ),
    );

  const closeRename = () => {
    setRenaming('');
    // The pressed button is gone.
    heading.current?.focus();
  };

  if (!hasPasskeys && passkeys.length === 0) return null;
  return (
    <Row
      row={row}
      icon="passkey"
      title={text('dashboard.passkeys.title')}
      state={
        passkeys.length > 0
          ? text('dashboard.passkeys.count', { count: passkeys.length })
          : text('dashboard.passkeys.none')
      }
      action={text(passkeys.length > 0 ? 'dashboard.security.manage' : 'dashboard.security.add')}
      heading={heading}
    >
      <Outcome {...outcome} />
      <p>{text('dashboard.passkeys.explanation')}</p>
      <ul class="entries">
        {passkeys.map((passkey) => (
          <li key={passkey.id}>
            {renaming === passkey.id ? (
              <Rename passkey={passkey} onChange={onChange} onClose={closeRename} />
            ) : (
              <>
                <span class="mark">
                  <Icon name="passkey" />
                </span>
                <Listed passkey={passkey} />
                <div class="choices">
                  <Button
                    kind="secondary"
                    isBusy={false}
                    busy=""
                    describedBy={`passkey-${passkey.id}`}
                    onClick={() => setRenaming(passkey.id)}
                  >
                    {text('dashboard.passkeys.rename')}
                  </Button>
                  <Button
                    kind="secondary"
                    isBusy={busy === passkey.id}
                    isAsking={isAsking}
                    busy={text('dashboard.removing')}
                    describedBy={`passkey-${passkey.id}`}
                    onClick={() => void remove(passkey)}
                  >
                    {text('dashboard.passkeys.remove')}
                  </Button>
                </div>
              </>
            )}
            {busy === passkey.id && question}
          </li>
        ))}
      </ul>
      {hasPasskeys && (
        <Button
          icon="add"
          isBusy={busy === 'add'}
          isAsking={isAsking}
          busy={text('dashboard.passkeys.adding')}
          onClick={() => void add()}
        >
          {text('dashboard.passkeys.add')}
        </Button>
      )}
      {busy === 'add' && question}
    </Row>
  );
}

function Listed({ passkey: { id, name, createdAt, lastUsedAt } }: { passkey: Passkey }) {
  return (
    <div id={`passkey-${id}`}>
      <strong>{name}</strong>
      <p class="hint">
        {lastUsedAt === null
          ? text('dashboard.passkeys.unused', { added: date(createdAt) })
          : text('dashboard.passkeys.used', { added: date(createdAt), lastUsed: dateTime(lastUsedAt) })}
      </p>
    </div>
  );
}

interface RenameProps {
  passkey: Passkey;
  onChange(): Promise<void>;
  onClose(): void;
}

function Rename({ passkey: { id, name }, onChange, onClose }: RenameProps) {
  const { field, isBusy, form } = useForm({
    initial: { name },
    required: { name: text('dashboard.passkeys.nameMissing') },
    async send(values) {
      await api.passkeys.rename.mutate({ id, name: values.name });
      await onChange();
      onClose();
      return undefined;
    },
    explain: sessionEnded,
  });
  const { element } = form;
  useEffect(() => element.current?.querySelector('input')?.select(), []);
  /** The id of the passkey makes the name unique, because several cards have fields. */
  const own = { ...field('name'), name: `name-${id}` };
  return (
    <Form {...form}>
      <TextField field={own} label={text('dashboard.passkeys.name')} autocomplete="off" />
      <div class="choices">
        <Button isBusy={isBusy} busy={text('dashboard.saving')}>
          {text('dashboard.passkeys.saveName')}
        </Button>
        <Button kind="secondary" isBusy={false} busy="" onClick={onClose}>
          {text('common.cancel')}
        </Button>
      </div>
    </Form>
  );
}
