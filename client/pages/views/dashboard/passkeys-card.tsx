import type { PasskeysListOutput } from 'account-client';
import { useEffect, useRef, useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { TextField } from '../../form/fields.tsx';
import { Button, Form } from '../../form/form.tsx';
import { useAction } from '../../form/use-action.ts';
import { useForm } from '../../form/use-form.ts';
import { date, dateTime } from '../../in-readers-language.ts';
import { addPasskey, hasPasskeys } from '../../passkeys.ts';
import { sessionEnded } from '../session-ended.tsx';
import { Outcome, unlessGone } from './outcome.tsx';
import { useRecentCredential } from './recent-credential.tsx';

type Passkey = PasskeysListOutput['data'][number];

interface Props {
  passkeys: Passkey[];
  /** Resolves once `passkeys` is read again. */
  onChange(): Promise<void>;
}

/** The passkeys of the user. A new one has the name of its authenticator, and can be given another. */
export function PasskeysCard({ passkeys, onChange }: Props) {
  /** `busy` is the id that is being removed, or `add`. */
  const { busy, act, ...outcome } = useAction();
  const [renaming, setRenaming] = useState('');
  const heading = useRef<HTMLHeadingElement>(null);
  const { withRecentCredential, question } = useRecentCredential();

  const add = () =>
    act('add', () =>
      withRecentCredential(addPasskey, async () => {
        await onChange();
        return 'The passkey is added. You can log in with it from now on.';
      }),
    );

  const remove = ({ id, name }: Passkey) =>
    act(id, () =>
      withRecentCredential(
        () => unlessGone(api.passkeys.remove.mutate({ id })),
        async () => {
          await onChange();
          // The button that was pressed is gone.
          heading.current?.focus();
          return `The passkey “${name}” is removed. You can delete it on your device too.`;
        },
      ),
    );

  if (!hasPasskeys && passkeys.length === 0) return null;
  return (
    <section class="card" aria-labelledby="passkeys">
      <h2 id="passkeys" ref={heading} tabIndex={-1}>
        Passkeys
      </h2>
      <div class="stack">
        <Outcome {...outcome} />
        <p>With a passkey you log in by fingerprint, face or the PIN of your device: no password, no code.</p>
        <ul class="entries">
          {passkeys.map((passkey) => (
            <li key={passkey.id}>
              {renaming === passkey.id ? (
                <Rename passkey={passkey} onChange={onChange} onClose={() => setRenaming('')} />
              ) : (
                <>
                  <Listed passkey={passkey} />
                  <div class="choices">
                    <Button
                      kind="secondary"
                      isBusy={false}
                      busy=""
                      describedBy={`passkey-${passkey.id}`}
                      onClick={() => setRenaming(passkey.id)}
                    >
                      Rename
                    </Button>
                    <Button
                      kind="secondary"
                      isBusy={busy === passkey.id}
                      busy="Removing …"
                      describedBy={`passkey-${passkey.id}`}
                      onClick={() => void remove(passkey)}
                    >
                      Remove
                    </Button>
                  </div>
                </>
              )}
              {busy === passkey.id && question}
            </li>
          ))}
        </ul>
        {hasPasskeys && (
          <Button kind="secondary" isBusy={busy === 'add'} busy="Adding …" onClick={() => void add()}>
            Add a passkey
          </Button>
        )}
        {busy === 'add' && question}
      </div>
    </section>
  );
}

function Listed({ passkey: { id, name, createdAt, lastUsedAt } }: { passkey: Passkey }) {
  return (
    <div id={`passkey-${id}`}>
      <strong>{name}</strong>
      <p class="hint">
        Added on {date(createdAt)}, {lastUsedAt === null ? 'not used yet' : `last used on ${dateTime(lastUsedAt)}`}.
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
    required: { name: 'Please enter a name' },
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
  /** Several cards of the page have fields: the id of the passkey makes this one's name unique. */
  const own = { ...field('name'), name: `name-${id}` };
  return (
    <Form {...form}>
      <TextField field={own} label="Name of this passkey" autocomplete="off" />
      <div class="choices">
        <Button isBusy={isBusy} busy="Saving …">
          Save name
        </Button>
        <Button kind="secondary" isBusy={false} busy="" onClick={onClose}>
          Cancel
        </Button>
      </div>
    </Form>
  );
}
