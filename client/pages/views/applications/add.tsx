import type { ApplicationsCreateInput, ApplicationsCreateOutput } from 'account-client';
import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { CheckBox, SelectField, TextArea, TextField } from '../../form/fields.tsx';
import { Button, Form, Notice } from '../../form/form.tsx';
import { useForm } from '../../form/use-form.ts';
import { text } from '../../language/texts.ts';
import { Secret } from '../admin/secret.tsx';
import { useRecentCredential } from '../dashboard/security/recent-credential.tsx';
import { sessionEnded } from '../session-ended.tsx';

const empty = {
  name: '',
  kind: 'web',
  redirectUris: '',
  postLogoutRedirectUris: '',
  scopes: 'openid profile email',
  resources: '',
  trusted: '',
};
/** The service checks the entries. */
const entriesIn = (list: string) => list.split(/\s+/).filter(Boolean);

const isKind = (kind: string): kind is ApplicationsCreateInput['kind'] => kind in kindTexts();
const kindTexts = () => ({
  web: text('applications.kinds.web'),
  browser: text('applications.kinds.browser'),
  native: text('applications.kinds.native'),
  device: text('applications.kinds.device'),
  service: text('applications.kinds.service'),
});

/** Adds an application and shows its secret once. */
export function AddApplication({ onAdded }: { onAdded(): Promise<void> }) {
  const [added, setAdded] = useState<ApplicationsCreateOutput>();
  const { withRecentCredential, question, isAsking } = useRecentCredential();
  const { field, isBusy, form } = useForm({
    initial: empty,
    required: { name: text('applications.add.nameMissing') },
    async send({ name, kind, redirectUris, postLogoutRedirectUris, scopes, resources, trusted }) {
      setAdded(undefined);
      if (!isKind(kind)) return empty;
      const given = {
        name,
        kind,
        redirectUris: entriesIn(redirectUris),
        postLogoutRedirectUris: entriesIn(postLogoutRedirectUris),
        scopes: entriesIn(scopes),
        resources: entriesIn(resources),
        trusted: trusted !== '',
      };
      return withRecentCredential(
        () => api.applications.create.mutate(given),
        async (created) => {
          setAdded(created);
          await onAdded();
          return empty;
        },
      );
    },
    explain(refusal) {
      const [name] = Object.keys(refusal.details)[0]?.split('.') ?? [];
      if (name === 'redirectUris' || name === 'postLogoutRedirectUris')
        return { field: name, message: text('applications.add.redirectsWrong') };
      if (name === 'scopes') return { field: name, message: text('applications.add.scopesWrong') };
      if (name === 'resources') return { field: name, message: text('applications.add.resourcesWrong') };
      return sessionEnded(refusal);
    },
  });
  return (
    <section class="card" aria-labelledby="add-application">
      <h2 id="add-application">{text('applications.add.title')}</h2>
      <Form {...form}>
        <TextField field={field('name')} label={text('applications.add.name')} autocomplete="off" />
        <SelectField field={field('kind')} label={text('applications.add.kind')} options={kindTexts()} />
        <TextArea
          field={field('redirectUris')}
          label={text('applications.add.redirects')}
          hint={text('applications.add.redirectsHint')}
          rows={2}
        />
        <TextArea
          field={field('postLogoutRedirectUris')}
          label={text('applications.add.postLogout')}
          hint={text('applications.add.postLogoutHint')}
          rows={1}
        />
        <TextField
          field={field('scopes')}
          label={text('applications.add.scopes')}
          type="letters"
          autocomplete="off"
          hint={text('applications.add.scopesHint')}
        />
        <TextArea
          field={field('resources')}
          label={text('applications.add.resources')}
          hint={text('applications.add.resourcesHint')}
          rows={1}
        />
        <CheckBox field={field('trusted')} isOptional>
          {text('applications.add.trusted')}
        </CheckBox>
        <Button kind="secondary" isBusy={isBusy} isAsking={isAsking} busy={text('applications.add.busy')}>
          {text('applications.add.submit')}
        </Button>
      </Form>
      {question}
      {added && !isBusy && (
        <>
          <Notice>{text('applications.add.done', { name: added.application.name })}</Notice>
          {added.secret !== undefined && <Secret secret={added.secret} purpose={text('applications.secret')} />}
        </>
      )}
    </section>
  );
}
