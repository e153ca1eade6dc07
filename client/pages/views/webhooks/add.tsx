import type { WebhooksCreateInput } from 'account-client';
import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { CheckBox, TextField } from '../../form/fields.tsx';
import { Button, Form, Notice } from '../../form/form.tsx';
import { useForm } from '../../form/use-form.ts';
import { text } from '../../language/texts.ts';
import { Secret } from '../admin/secret.tsx';
import { useRecentCredential } from '../dashboard/security/recent-credential.tsx';
import { sessionEnded } from '../session-ended.tsx';

const EVERY_TYPE = '*';
const empty = { url: '', all: 'ticked', types: '', description: '', user: '' };

/** The service checks the names. */
const typesIn = (list: string) =>
  list
    .split(',')
    .map((type) => type.trim())
    .filter(Boolean) as WebhooksCreateInput['types'];

/** Creates a webhook and shows its secret once. */
export function AddWebhook({ onAdded }: { onAdded(): Promise<void> }) {
  const [secret, setSecret] = useState('');
  const { withRecentCredential, question, isAsking } = useRecentCredential();
  const { field, isBusy, form } = useForm({
    initial: empty,
    required: { url: text('webhooks.add.urlMissing') },
    send({ url, all, types, description, user }) {
      setSecret('');
      const chosen: WebhooksCreateInput['types'] = all ? [EVERY_TYPE] : typesIn(types);
      const include = user ? (['user'] as const) : [];
      return withRecentCredential(
        () => api.webhooks.create.mutate({ url: url.trim(), types: chosen, include: [...include], description }),
        async (created) => {
          setSecret(created.secret);
          await onAdded();
          return empty;
        },
      );
    },
    explain(refusal) {
      const [name = ''] = Object.keys(refusal.details);
      if (name === 'url') return { field: 'url', message: text('webhooks.add.urlWrong') };
      return name.startsWith('types')
        ? { field: 'types', message: text('webhooks.add.typesWrong') }
        : sessionEnded(refusal);
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
          <TextField
            field={field('types')}
            label={text('webhooks.add.types')}
            type="letters"
            autocomplete="off"
            hint={text('webhooks.add.typesHint')}
          />
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
