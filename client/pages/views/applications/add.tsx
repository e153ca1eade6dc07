import type { ApplicationsCreateInput, ApplicationsCreateOutput } from 'account-client';
import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { CheckBox, SelectField, TextArea, TextField } from '../../form/fields.tsx';
import { Button, Form, Notice } from '../../form/form.tsx';
import { useForm } from '../../form/use-form.ts';
import { text } from '../../language/texts.ts';
import { dropDraft } from '../../session/draft.ts';
import { Secret } from '../admin/secret.tsx';
import { useRecentCredential } from '../dashboard/security/recent-credential.tsx';
import { sessionEnded } from '../session-ended.tsx';

const empty = {
  name: '',
  kind: 'web',
  redirectUris: '',
  postLogoutRedirectUris: '',
  backchannelLogoutUri: '',
  scopes: 'openid profile email',
  resources: '',
  trusted: '',
};
const DRAFT = 'new-application';
/** The kinds to which no browser comes back. */
const unredirected = ['device', 'service'];
const advanced = ['postLogoutRedirectUris', 'backchannelLogoutUri', 'resources'] as const;

/** The service checks the entries. */
const entriesIn = (list: string) => list.split(/\s+/).filter(Boolean);

const isKind = (kind: string): kind is ApplicationsCreateInput['kind'] => kind in kindTexts();
const kindTexts = () => ({
  web: text('apps.kinds.web'),
  browser: text('apps.kinds.browser'),
  native: text('apps.kinds.native'),
  device: text('apps.kinds.device'),
  service: text('apps.kinds.service'),
});

/** Adds an application and shows its secret once. */
export function AddApplication({ onAdded }: { onAdded(): Promise<void> }) {
  const [added, setAdded] = useState<ApplicationsCreateOutput>();
  const { withRecentCredential, question, isAsking } = useRecentCredential();
  const { field, isBusy, form } = useForm({
    initial: empty,
    required: { name: text('apps.add.nameMissing') },
    draft: { key: DRAFT, names: Object.keys(empty) as (keyof typeof empty)[] },
    async send({ name, kind, redirectUris, postLogoutRedirectUris, backchannelLogoutUri, scopes, resources, trusted }) {
      setAdded(undefined);
      if (!isKind(kind)) return empty;
      const given = {
        name,
        kind,
        ...(!unredirected.includes(kind) && {
          redirectUris: entriesIn(redirectUris),
          postLogoutRedirectUris: entriesIn(postLogoutRedirectUris),
          backchannelLogoutUri: backchannelLogoutUri || null,
        }),
        scopes: entriesIn(scopes),
        resources: entriesIn(resources),
        trusted: trusted !== '',
      };
      return withRecentCredential(
        () => api.applications.create.mutate(given),
        async (created) => {
          dropDraft(DRAFT);
          setAdded(created);
          await onAdded();
          return empty;
        },
      );
    },
    explain(refusal) {
      const [name] = Object.keys(refusal.details)[0]?.split('.') ?? [];
      if (name === 'redirectUris' || name === 'postLogoutRedirectUris')
        return { field: name, message: text('apps.add.redirectsWrong') };
      if (name === 'backchannelLogoutUri') return { field: name, message: text('apps.add.backchannelWrong') };
      if (name === 'scopes') return { field: name, message: text('apps.add.scopesWrong') };
      if (name === 'resources') return { field: name, message: text('apps.add.resourcesWrong') };
      return sessionEnded(refusal);
    },
  });
  const isRedirected = !unredirected.includes(field('kind').value);
  const hasAdvancedError = advanced.some((name) => field(name).error) || undefined;
  return (
    <section class="card" aria-labelledby="add-application">
      <h2 id="add-application">{text('apps.add.title')}</h2>
      <Form {...form}>
        <TextField field={field('name')} label={text('apps.add.name')} autocomplete="off" />
        <SelectField field={field('kind')} label={text('apps.add.kind')} options={Object.entries(kindTexts())} />
        {isRedirected && (
          <TextArea
            field={field('redirectUris')}
            label={text('apps.add.redirects')}
            hint={text('apps.add.redirectsHint')}
            rows={2}
          />
        )}
        <TextField
          field={field('scopes')}
          label={text('apps.add.scopes')}
          type="letters"
          autocomplete="off"
          hint={text('apps.add.scopesHint')}
        />
        <details open={hasAdvancedError}>
          <summary>{text('apps.add.advanced')}</summary>
          <div class="stack">
            {isRedirected && (
              <>
                <TextArea
                  field={field('postLogoutRedirectUris')}
                  label={text('apps.add.postLogout')}
                  hint={text('apps.add.postLogoutHint')}
                  rows={1}
                />
                <TextField
                  field={field('backchannelLogoutUri')}
                  label={text('apps.add.backchannel')}
                  type="letters"
                  autocomplete="off"
                  hint={text('apps.add.backchannelHint')}
                />
              </>
            )}
            <TextArea
              field={field('resources')}
              label={text('apps.add.resources')}
              hint={text('apps.add.resourcesHint')}
              rows={1}
            />
            <CheckBox field={field('trusted')} isOptional>
              {text('apps.add.trusted')}
            </CheckBox>
          </div>
        </details>
        <Button isBusy={isBusy} isAsking={isAsking} busy={text('apps.add.busy')}>
          {text('apps.add.submit')}
        </Button>
      </Form>
      {question}
      {added && !isBusy && (
        <>
          <Notice>{text('apps.add.done', { name: added.application.name })}</Notice>
          {added.secret !== undefined && <Secret secret={added.secret} purpose={text('apps.secret')} />}
        </>
      )}
    </section>
  );
}
