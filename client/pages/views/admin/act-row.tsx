import type { UsersShowOutput } from 'account-client';
import { useEffect, useRef, useState } from 'preact/hooks';
import { TextField } from '../../form/fields.tsx';
import { Button, Form, Notice } from '../../form/form.tsx';
import { type FieldState, useForm } from '../../form/use-form.ts';
import { text } from '../../language/texts.ts';
import { dropDraft, readDraft } from '../../session/draft.ts';
import { useRecentCredential } from '../dashboard/security/recent-credential.tsx';
import { sessionEnded } from '../session-ended.tsx';
import type { Act, Typed } from './acts.ts';

const nothingTyped: Record<Typed, string> = { confirmation: '', address: '' };

interface Props {
  act: Act;
  user: Pick<UsersShowOutput['user'], 'id' | 'email'>;
  /** Resolves once the user is reloaded. */
  onDone(): Promise<void>;
}

/** An action with its button. A required input is shown when the button is pressed. */
export function ActRow({ act: { name, title, explanation, button, typed, takes = false, call }, user, onDone }: Props) {
  const draft = `${name}:${user.id}`;
  // Also open after a reload, and after a reauthentication at a provider.
  const [isOpen, setOpen] = useState(() => typed !== undefined && typed in readDraft(draft));
  const [isPressed, setPressed] = useState(false);
  const [notice, setNotice] = useState('');
  const heading = useRef<HTMLHeadingElement>(null);
  const { withRecentCredential, question, isAsking } = useRecentCredential();
  const { field, isBusy, form } = useForm({
    initial: nothingTyped,
    check: ({ confirmation }): Partial<Record<Typed, string>> =>
      typed === 'confirmation' && confirmation.trim().toLowerCase() !== user.email
        ? { confirmation: text('admin.acts.confirmation.wrong', { email: user.email }) }
        : {},
    draft: { key: draft, names: typed ? [typed] : [] },
    send(values) {
      setNotice('');
      return withRecentCredential(
        () => call(values),
        async (done) => {
          await onDone();
          close();
          setNotice(done);
          return nothingTyped;
        },
      );
    },
    explain: (refusal) =>
      refusal.details['address']
        ? { field: 'address', message: text('admin.acts.address.wrong') }
        : sessionEnded(refusal),
  });

  /** For when the pressed button is gone. */
  const close = () => {
    dropDraft(draft);
    setOpen(false);
    setPressed(false);
    heading.current?.focus();
  };

  const { element } = form;
  useEffect(() => {
    if (isPressed) element.current?.querySelector('input')?.focus();
  }, [isPressed]);

  const id = `act-${name}`;
  return (
    <li class={takes ? 'takes' : undefined}>
      <div id={id}>
        <h3 ref={heading} tabIndex={-1}>
          {title}
        </h3>
        <p class="hint">{explanation}</p>
      </div>
      {button && typed && !isOpen && (
        <Button
          kind="secondary"
          isBusy={false}
          busy=""
          describedBy={id}
          onClick={() => {
            setNotice('');
            setOpen(true);
            setPressed(true);
          }}
        >
          {button.label}
        </Button>
      )}
      {button && (!typed || isOpen) && (
        <Form {...form}>
          {typed && <TypedField typed={typed} field={{ ...field(typed), name: `${id}-${typed}` }} email={user.email} />}
          <div class="choices">
            <Button
              kind={typed !== 'confirmation' ? 'secondary' : takes ? 'danger' : 'primary'}
              isBusy={isBusy}
              isAsking={isAsking}
              busy={button.busy}
              describedBy={id}
            >
              {button.label}
            </Button>
            {typed && (
              <Button kind="secondary" isBusy={isBusy} isAsking={isAsking} busy={text('common.cancel')} onClick={close}>
                {text('common.cancel')}
              </Button>
            )}
          </div>
        </Form>
      )}
      {question}
      {notice && !isBusy && <Notice>{notice}</Notice>}
    </li>
  );
}

function TypedField({ typed, field, email }: { typed: Typed; field: FieldState; email: string }) {
  return typed === 'confirmation' ? (
    <TextField
      field={field}
      label={text('admin.acts.confirmation.label')}
      type="email"
      autocomplete="off"
      hint={text('admin.acts.confirmation.hint', { email })}
    />
  ) : (
    <TextField
      field={field}
      label={text('admin.acts.address.label')}
      type="letters"
      autocomplete="off"
      hint={text('admin.acts.address.hint')}
    />
  );
}
