import { useState } from 'preact/hooks';
import { type EventType, eventTypes } from '../../../../server/shared/event-types.ts';
import { api } from '../../api.ts';
import { CheckBox, TextField } from '../../form/fields.tsx';
import { Button, Form, Notice } from '../../form/form.tsx';
import { useForm } from '../../form/use-form.ts';
import { text } from '../../language/texts.ts';
import { dropDraft } from '../../session/draft.ts';
import { Secret } from '../admin/secret.tsx';
import { useRecentCredential } from '../dashboard/security/recent-credential.tsx';
import { sessionEnded } from '../session-ended.tsx';

const everyType = ['*'] as const;
const noType = Object.fromEntries(eventTypes.map((type) => [type, ''])) as Record<EventType, string>;
const DRAFT = 'new-webhook';
const empty = { url: '', all: 'ticked', description: '', user: '', ...noType };

/** Creates a webhook and shows its secret once. */
export function AddWebhook({ onAdded }: { onAdded(): Promise<void> }) {
  const [secret, setSecret] = useState('');
  const { withRecentCredential, question, isAsking } = useRecentCredential();
  const { field, isBusy, form } = useForm({
    initial: empty,
    required: { url: text('webhooks.add.urlMissing') },
    draft: { key: DRAFT, names: ['url', 'all', 'description', 'user', ...eventTypes] },
    // The message stands at the first box.
    check: ({ all, ...ticked }): Partial<Record<EventType, string>> =>
      all || eventTypes.some((type) => ticked[type]) ? {} : { [eventTypes[0]]: text('webhooks.add.typesMissing') },
    send({ url, all, description, user, ...ticked }) {
      setSecret('');
      const types = all ? [...everyType] : eventTypes.filter((type) => ticked[type]);
      const include = user ? (['user'] as const) : [];
      return withRecentCredential(
        () => api.webhooks.create.mutate({ url: url.trim(), types, include: [...include], description }),
        async (created) => {
          dropDraft(DRAFT);
          setSecret(created.secret);
          await onAdded();
          return empty;
        },
      );
    },
    explain(refusal) {
      return refusal.details['url'] ? { field: 'url', message: text('webhooks.add.urlWrong') } : sessionEnded(refusal);
    },
  });
  return (
    <section class="card" aria-labelledby="add-webhook">
      <h2 id="add-webhook">{text('webhooks.add.title')}</h2>
      <Form {...form}>
        <TextField
          field={field('url')}
          label={text('webhooks.add.url')}
          type="url"
          autocomplete="off"
          hint={text('webhooks.add.urlHint')}
        />
        <CheckBox field={field('all')} isOptional>
          {text('webhooks.add.allTypes')}
        </CheckBox>
        {!field('all').value && (
          <fieldset class="checks">
            <legend>{text('webhooks.add.types')}</legend>
            {eventTypes.map((type) => (
              <CheckBox key={type} field={field(type)} isOptional>
                {type}
              </CheckBox>
            ))}
          </fieldset>
        )}
        <TextField field={field('description')} label={text('webhooks.add.description')} autocomplete="off" />
        <CheckBox field={field('user')} isOptional>
          {text('webhooks.add.user')}
        </CheckBox>
        <Button isBusy={isBusy} isAsking={isAsking} busy={text('webhooks.add.busy')}>
          {text('webhooks.add.submit')}
        </Button>
      </Form>
      {question}
      {secret && !isBusy && (
        <>
          <Notice>{text('webhooks.add.done')}</Notice>
          <Secret secret={secret} purpose={text('webhooks.secret')} />
        </>
      )}
    </section>
  );
}
