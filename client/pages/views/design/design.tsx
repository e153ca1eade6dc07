import type { UsersFindOutput } from 'account-client';
import { CheckBox, PasswordField, SelectField, TextArea, TextField } from '../../form/fields.tsx';
import { Alert, Button, Notice } from '../../form/form.tsx';
import type { FieldState } from '../../form/use-form.ts';
import { Icon, type IconName } from '../../icons/icon.tsx';
import { shapes } from '../../icons/lucide.ts';
import { ProviderLogo } from '../../icons/provider-logo.tsx';
import { Page } from '../../page.tsx';
import { Standing } from '../admin/standing.tsx';
import { UserTable } from '../admin/user-table.tsx';
import { Skeleton } from '../skeleton.tsx';
import { Group } from './group.tsx';
import { Parts } from './parts.tsx';
import { Scales } from './scales.tsx';
import { inScheme, type Scheme } from './schemes.ts';
import './design.css';

/** Every control in every state, in both schemes, by the components of the pages. In English: developers read it. */
export const Design = () => (
  <Page title="Design" isWide>
    {(['light', 'dark'] as const).map((scheme) => (
      <section key={scheme} class="card" aria-label={`In ${scheme}`} data-scheme={scheme} ref={inScheme(scheme)}>
        <Controls scheme={scheme} />
      </section>
    ))}
  </Page>
);

const nothing = () => undefined;

function Controls({ scheme }: { scheme: Scheme }) {
  const field = (name: string, value = '', error?: string): FieldState => ({
    name: `${scheme}-${name}`,
    value,
    error,
    onInput: nothing,
  });
  return (
    <>
      <Scales />
      <Buttons />
      <Group title="Fields">
        <TextField field={field('empty')} label="Empty" autocomplete="off" placeholder="Placeholder" />
        <TextField
          field={field('filled', 'Ada Lovelace')}
          label="Filled, with a hint"
          autocomplete="off"
          hint="A hint"
        />
        <TextField field={field('wrong', 'ada@', 'Must be a valid email address')} label="Wrong" autocomplete="off" />
        <TextField field={field('fixed', 'ada@example.com')} label="Read only" autocomplete="off" readonly />
        <TextArea field={field('bio', 'Writes programs.')} label="Several lines" rows={3} />
        <SelectField field={field('choice', 'a')} label="Choice" options={Object.entries({ a: 'One', b: 'Another' })} />
        <SelectField field={field('wrongChoice', '', 'Please choose one')} label="Wrong choice" options={[['', '–']]} />
        <PasswordField field={field('password', 'Analytical')} label="New password" isNew />
        <CheckBox field={field('ticked', 'ticked')}>Ticked</CheckBox>
        <CheckBox field={field('open', '', 'Please tick this')}>Not ticked</CheckBox>
      </Group>
      <Group title="Messages">
        <Notice stays>What was done.</Notice>
        <Alert>Why it was refused.</Alert>
        <div class="notice">What there is to know.</div>
        <div class="notice warning">What to take care of.</div>
        <p>
          Text with <a href="#link">the address of something</a> and <code>code</code>.
        </p>
        <p class="hint">A hint.</p>
        <p class="error">An error.</p>
      </Group>
      <Lists />
      <Parts scheme={scheme} code={field('code', '123')} />
      <Group title="Loading">
        {/* A busy element would hide what follows it. */}
        <div class="sample">
          <Skeleton />
        </div>
      </Group>
      <Group title="Icons">
        <p class="samples">
          {(Object.keys(shapes) as IconName[]).map((name) => (
            <span key={name}>
              <Icon name={name} /> {name}
            </span>
          ))}
          {['apple', 'discord', 'facebook', 'github', 'gitlab', 'google', 'microsoft', 'x', 'other'].map((name) => (
            <span key={name}>
              <ProviderLogo provider={name} /> {name}
            </span>
          ))}
        </p>
      </Group>
    </>
  );
}

const Buttons = () => (
  <Group title="Buttons">
    {(['primary', 'secondary', 'quiet', 'danger'] as const).map((kind) => (
      <div key={kind} class="choices">
        <Button kind={kind} isBusy={false} busy="" onClick={nothing}>
          {kind}
        </Button>
        <Button kind={kind} icon="add" isBusy={false} busy="" onClick={nothing}>
          With an icon
        </Button>
        <Button kind={kind} isBusy busy="Busy…" onClick={nothing}>
          {kind}
        </Button>
      </div>
    ))}
    <div class="choices takes">
      <Button kind="secondary" isBusy={false} busy="" onClick={nothing}>
        Takes away
      </Button>
      <a class="button secondary" href="#link">
        A link as a button
      </a>
    </div>
  </Group>
);

const YEAR_2026 = 1_767_225_600;
const ada = {
  id: 'user_01931b6e-7a54-7c3c-9d0a-3f4f5f6a7b8c',
  name: 'Ada Lovelace',
  email: 'ada@example.com',
  avatar: '',
  provider: 'email',
  createdAt: YEAR_2026,
  role: 'admin',
  emailVerified: true,
  blockedAt: null,
  deletedAt: null,
  lastLoginAt: YEAR_2026,
} as const satisfies UsersFindOutput['data'][number];
const mallory = {
  ...ada,
  id: 'user_01931b6e-7a54-7c3c-9d0a-3f4f5f6a7b8d',
  name: 'Mallory',
  email: 'mallory@example.com',
  role: 'user',
  emailVerified: false,
  blockedAt: YEAR_2026,
  deletedAt: YEAR_2026,
  lastLoginAt: null,
} as const;

const Lists = () => (
  <>
    <Group title="Lists">
      <ul class="entries">
        {([undefined, 'warning', 'failure'] as const).map((look) => (
          <li key={look}>
            <div class={look ? `mark ${look}` : 'mark'}>
              <Icon name={look ?? 'laptop'} />
            </div>
            <div>
              <strong>What it is</strong>
              <p class="hint">More about it</p>
            </div>
            <Button kind="secondary" isBusy={false} busy="" onClick={nothing}>
              Act
            </Button>
          </li>
        ))}
      </ul>
      <p class="badges">
        <Standing user={{ ...mallory, role: 'admin' }} /> <span class="badge success">success</span>{' '}
        <span class="badge">plain</span>
      </p>
    </Group>
    <Group title="Table">
      <UserTable users={[ada, mallory]} listing={{ sort: 'name' }} />
    </Group>
  </>
);
