import type { ComponentChildren } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { api, refusalIn } from '../../../api.ts';
import { CodeField } from '../../../form/code-field.tsx';
import { PasswordField } from '../../../form/fields.tsx';
import { Button, Form } from '../../../form/form.tsx';
import { useAction } from '../../../form/use-action.ts';
import { useForm } from '../../../form/use-form.ts';
import { ProviderLogo } from '../../../icons/provider-logo.tsx';
import { providerLabel } from '../../../language/provider-label.ts';
import { text } from '../../../language/texts.ts';
import { ifAccepted, passkeyFor } from '../../../passkeys.ts';
import { focusBegun, rememberBegun } from '../../../session/begun.ts';
import { isActing } from '../../../session/draft.ts';
import { sessionEnded } from '../../session-ended.tsx';
import { Outcome } from '../outcome.tsx';
import { isEmpty, readWaysToConfirm, type Typed, type WaysToConfirm } from './ways-to-confirm.ts';

interface Asked {
  ways: WaysToConfirm;
  confirm(): void;
  cancel(): void;
}

/**
 * For sensitive changes. `withRecentCredential(call, then)` makes the call and passes its result on. If the service
 * requires a recent credential, `question` asks for one, and the call is repeated. If the user cancels, it resolves to
 * undefined, and nothing has changed. Render `question` right after the pressed button or form, but outside forms,
 * because it is a form. `isAsking`: the button waits for the user.
 */
export function useRecentCredential(): {
  withRecentCredential<T, R>(call: () => Promise<T>, then: (answer: T) => R | Promise<R>): Promise<R | undefined>;
  question: ComponentChildren;
  isAsking: boolean;
} {
  const [asked, setAsked] = useState<Asked>();
  useEffect(focusBegun, []);

  /** Resolves to whether the user has confirmed. */
  const ask = async () => {
    // Set before the question is rendered: its first field must be the next Tab stop.
    const ways = await readWaysToConfirm();
    return new Promise<boolean>((resolve) => {
      const before = document.activeElement;
      const close = (isConfirmed: boolean) => {
        setAsked(undefined);
        // The element that had the focus still exists, and the user continues there.
        if (before instanceof HTMLElement) before.focus();
        resolve(isConfirmed);
      };
      setAsked({ ways, confirm: () => close(true), cancel: () => close(false) });
    });
  };

  return {
    async withRecentCredential(call, then) {
      try {
        return await then(await call());
      } catch (error) {
        // An administrator who acts for the user can give no credential.
        if (refusalIn(error).code !== 'REAUTHENTICATION_REQUIRED' || isActing()) throw error;
      }
      return (await ask()) ? then(await call()) : undefined;
    },
    question: asked && <Question {...asked} />,
    isAsking: asked !== undefined,
  };
}

function Question({ ways, confirm, cancel }: Asked) {
  const id = useId();
  const section = useRef<HTMLElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  // Focus the question together with its heading, so that further typing goes there.
  useLayoutEffect(() => heading.current?.focus(), []);
  const action = useAction();
  const { typed } = ways;

  const confirmByPasskey = () =>
    action.act('passkey', async () => {
      const passkey = await passkeyFor('reauthenticate');
      await ifAccepted(api.auth.reauthenticate.mutate({ passkey }));
      confirm();
      return undefined;
    });

  return (
    <section class="question stack" aria-labelledby={id} ref={section}>
      <h3 id={id} ref={heading} tabIndex={-1}>
        {text('dashboard.confirm.title')}
      </h3>
      <Outcome refusal={action.refusal} />
      {isEmpty(ways) && <p>{text('dashboard.confirm.logInAgain')}</p>}
      {!typed && ways.providers.length > 0 && <p>{text('dashboard.confirm.logInThere')}</p>}
      {typed && <TypedCredential kind={typed} id={`${id}-${typed}`} confirm={confirm} />}
      <div class="choices">
        {ways.hasPasskey && (
          <Button
            kind="secondary"
            isBusy={action.busy !== ''}
            busy={text('dashboard.confirm.waiting')}
            onClick={() => void confirmByPasskey()}
          >
            {text('dashboard.confirm.withPasskey')}
          </Button>
        )}
        {ways.providers.map((provider) => (
          <a
            key={provider}
            class="secondary button"
            href={wayThrough(provider)}
            onClick={() => rememberBegun(section.current?.previousElementSibling)}
          >
            <ProviderLogo provider={provider} />
            {text('dashboard.confirm.withProvider', { provider: providerLabel(provider) })}
          </a>
        ))}
        <Button kind="quiet" isBusy={false} busy="" onClick={cancel}>
          {text('common.cancel')}
        </Button>
      </div>
    </section>
  );
}

function TypedCredential({ kind, id, confirm }: { kind: Typed; id: string; confirm(): void }) {
  const { field, isBusy, form } = useForm({
    initial: { [kind]: '' } as Record<Typed, string>,
    required: { [kind]: text(`dashboard.confirm.${kind}Missing`) },
    async send({ [kind]: given }) {
      await api.auth.reauthenticate.mutate({ [kind]: given });
      confirm();
      return undefined;
    },
    explain(refusal) {
      const { code, message } = refusal;
      if (code === 'INVALID_CREDENTIALS') return { field: kind, message };
      if (code !== 'INVALID_CODE') return sessionEnded(refusal);
      field(kind).onInput('');
      return { field: kind, message: text('dashboard.confirm.codeWrong') };
    },
  });
  /** The name is part of the field's id, because two cards of a page may ask at the same time. */
  const own = { ...field(kind), name: id };
  return (
    <Form {...form}>
      {kind === 'password' ? (
        <PasswordField field={own} label={text('dashboard.confirm.password')} isNew={false} />
      ) : (
        <CodeField
          field={own}
          label={text('dashboard.confirm.code')}
          submit={() => form.element.current?.requestSubmit()}
        />
      )}
      <Button isBusy={isBusy} busy={text('dashboard.confirm.confirming')}>
        {text('dashboard.confirm.submit')}
      </Button>
    </Form>
  );
}

/**
 * A reauthentication at a provider leaves the page. The browser returns to it; its forms have kept the input, and the
 * pressed button has the focus.
 */
const wayThrough = (provider: string) =>
  `/auth/${provider}?${new URLSearchParams({ reauthenticate: '1', page: location.pathname })}`;
