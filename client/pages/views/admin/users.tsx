import type { UsersFindOutput } from 'account-client';
import { useState } from 'preact/hooks';
import { pagePaths } from '../../../../server/shared/page-paths.ts';
import { api } from '../../api.ts';
import { TextField } from '../../form/fields.tsx';
import { Button, Form } from '../../form/form.tsx';
import { useForm } from '../../form/use-form.ts';
import { date } from '../../language/in-readers-language.ts';
import { text } from '../../language/texts.ts';
import { usePages } from '../../use-pages.ts';
import { sessionEnded } from '../session-ended.tsx';
import { ShowMore } from '../show-more.tsx';
import { addressOf } from './address.ts';
import { AdminPage } from './admin-page.tsx';
import { Invitations } from './invitations.tsx';
import { Invite } from './invite.tsx';
import { standingOf } from './standing.ts';

type Listed = UsersFindOutput['data'][number];

const A_PAGE = 20;

const find = (q: string, cursor?: string) =>
  api.users.find.query({ limit: A_PAGE, ...(q && { q }), ...(cursor && { cursor }) });

/** All users, or the results of a search. The URL keeps the search for a reload, and for the way back from a user. */
export function Users() {
  const q = new URLSearchParams(location.search).get('q') ?? '';
  return (
    <AdminPage title={() => text('admin.users.title')} read={() => find(q)}>
      {(first) => <Search q={q} first={first} />}
    </AdminPage>
  );
}

interface Results {
  /** The search; empty for all users. */
  q: string;
  first: UsersFindOutput;
}

function Search(initial: Results) {
  const [results, setResults] = useState({ ...initial, count: 0 });
  const [invited, setInvited] = useState(0);
  const { field, isBusy, form } = useForm({
    initial: { q: initial.q },
    async send(values) {
      const q = values.q.trim();
      const first = await find(q);
      setResults({ q, first, count: results.count + 1 });
      history.replaceState(history.state, '', q ? addressOf({ q }) : pagePaths.admin);
      return undefined;
    },
    explain: sessionEnded,
  });
  return (
    <>
      <section class="card" aria-labelledby="search">
        <h2 id="search">{text('admin.users.search')}</h2>
        <Form {...form}>
          <TextField
            field={field('q')}
            label={text('admin.users.query')}
            type="letters"
            autocomplete="off"
            hint={text('admin.users.queryHint')}
          />
          <Button isBusy={isBusy} busy={text('admin.users.finding')}>
            {text('admin.users.find')}
          </Button>
        </Form>
      </section>
      <section class="card" aria-labelledby="found">
        <h2 id="found">
          {results.q ? text('admin.users.startingWith', { query: results.q }) : text('admin.users.everyone')}
        </h2>
        <div class="stack">
          <p class="hint" role="status">
            {summaryOf(results.first)}
          </p>
          <Found key={results.count} {...results} />
        </div>
      </section>
      <Invite onInvited={() => setInvited((count) => count + 1)} />
      <Invitations key={invited} />
    </>
  );
}

/** Whether this is the first page. */
function summaryOf({ data: { length: count }, nextCursor }: UsersFindOutput): string {
  if (nextCursor !== undefined) return text('admin.users.foundAndMore', { count });
  return count === 0 ? text('admin.users.nobody') : text('admin.users.found', { count });
}

function Found({ q, first }: Results) {
  const { items, ...pages } = usePages((cursor) => find(q, cursor), first);
  return (
    <>
      <ul class="entries">
        {items.map((user) => (
          <li key={user.id}>
            <Entry user={user} />
          </li>
        ))}
      </ul>
      <ShowMore {...pages} />
    </>
  );
}

function Entry({ user }: { user: Listed }) {
  const { id, name, email, createdAt } = user;
  return (
    <div>
      <a href={addressOf({ user: id })}>
        <strong>{name}</strong> – {email}
      </a>
      <p class="hint">{[text('admin.users.since', { date: date(createdAt) }), ...standingOf(user)].join(', ')}</p>
    </div>
  );
}
