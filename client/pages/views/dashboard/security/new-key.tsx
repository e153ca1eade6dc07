import { useState } from 'preact/hooks';
import { type Scope, scopeNames } from '../../../../../server/shared/scopes.ts';
import { api } from '../../../api.ts';
import { CheckBox, TextField } from '../../../form/fields.tsx';
import { Button, Form, Notice } from '../../../form/form.tsx';
import { useForm } from '../../../form/use-form.ts';
import { text } from '../../../language/texts.ts';
import { dropDraft } from '../../../session/draft.ts';
import { sessionEnded } from '../../session-ended.tsx';
import { useRecentCredential } from './recent-credential.tsx';
import { CopyButton } from './recovery-codes.tsx';

type Values = Record<'name' | 'expiresInDays' | Scope, string>;

const noScopes = Object.fromEntries(scopeNames.map((scope) => [scope, ''])) as Record<Scope, string>;
const empty: Values = { name: '', expiresInDays: '90', ...noScopes };

const DRAFT = 'new-key';

const chosenIn = (values: Values): Scope[] => scopeNames.filter((scope) => values[scope] !== '');
const isDays = (days: string): boolean => days === '' || (/^\d{1,4}$/.test(days) && +days >= 1 && +days <= 3650);

/** Creates a key and shows it once. */
export function NewKey({ onCreated }: { onCreated(): Promise<void> }) {
  const [secret, setSecret] = useState('');
  const { withRecentCredential, question, isAsking } = useRecentCredential();
  const { field, isBusy, form } = useForm<keyof Values>({
    initial: empty,
    required: { name: text('dashboard.keys.nameMissing') },
    check: (values) => ({
      ...(!isDays(values.expiresInDays.trim()) && { expiresInDays: text('dashboard.keys.daysWrong') }),
      ...(chosenIn(values).length === 0 && { [scopeNames[0]]: text('dashboard.keys.noScope') }),
    }),
    draft: { key: DRAFT, names: ['name', 'expiresInDays', ...scopeNames] },
    send(values) {
      setSecret('');
      const days = values.expiresInDays.trim();
      const input = {
        name: values.name,
        scopes: chosenIn(values),
        ...(days !== '' && { expiresInDays: Number(days) }),
      };
      return withRecentCredential(
        () => api.keys.create.mutate(input),
        async (created) => {
          dropDraft(DRAFT);
          setSecret(created.secret);
          await onCreated();
          return empty;
        },
      );
    },
    explain: sessionEnded,
  });
  /** Names of their own, because several cards have fields. */
  const own = (name: keyof Values) => ({ ...field(name), name: `key-${name}` });
  return (
    <>
      <h3>{text('dashboard.keys.add')}</h3>
      <Form {...form}>
        <TextField field={own('name')} label={text('dashboard.keys.name')} autocomplete="off" />
        <fieldset>
          <legend>{text('dashboard.keys.allowed')}</legend>
          {scopeNames.map((scope) => (
            <CheckBox key={scope} field={own(scope)} isOptional>
              {text(`dashboard.keys.scopes.${scope}`)}
            </CheckBox>
          ))}
        </fieldset>
        <TextField
          field={own('expiresInDays')}
          label={text('dashboard.keys.days')}
          type="digits"
          autocomplete="off"
          hint={text('dashboard.keys.daysHint')}
        />
        <Button isBusy={isBusy} isAsking={isAsking} busy={text('dashboard.keys.creating')}>
          {text('dashboard.keys.create')}
        </Button>
      </Form>
      {question}
      {secret && !isBusy && (
        <>
          <Notice stays>{text('dashboard.keys.created')}</Notice>
          <p>
            {text('dashboard.keys.key')}: <code>{secret}</code>
          </p>
          <CopyButton content={secret}>{text('dashboard.keys.copy')}</CopyButton>
        </>
      )}
    </>
  );
}
