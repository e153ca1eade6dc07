import type { UsersFindOutput } from 'account-client';
import { useState } from 'preact/hooks';
import { pagePaths } from '../../../../server/page-paths.ts';
import { api } from '../../api.ts';
import { TextField } from '../../form/fields.tsx';
import { Alert, Button, Form } from '../../form/form.tsx';
import { sentenceFor, useForm } from '../../form/use-form.ts';
import { date, number } from '../../in-readers-language.ts';
import { usePages } from '../../use-pages.ts';
import { sessionEnded } from '../session-ended.tsx';
import { AdminPage } from './admin-page.tsx';
import { Invite } from './invite.tsx';
import { standingOf } from './standing.ts';

type Listed = UsersFindOutput['data'][number];

const A_PAGE = 20;

const find = (q: string, cursor?: string) =>
  api.users.find.query({ limit: A_PAGE, ...(q && { q }), ...(cursor && { cursor }) });

const addressOf = (query: Record<string, string>) => `${pagePaths.admin}?${new URLSearchParams(query)}`;

/** Every user, or those whom a search finds, which the address keeps: for a reload, and for the way back from one of them. */
export function Users() {
  const q = new URLSearchParams(location.search).get('q') ?? '';
  return (
    <AdminPage title={() => 'Users'} read={() => find(q)}>
      {(first) => <Search q={q} first={first} />}
    </AdminPage>
  );
}

interface Results {
  /** What was searched for; empty for every user. */
  q: string;
  first: UsersFindOutput;
}

function Search(initial: Results) {
  const [results, setResults] = useState({ ...initial, count: 0 });
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
        <h2 id="search">Search</h2>
        <Form {...form}>
          <TextField
            field={field('q')}
            label="Name or email"
            type="letters"
            autocomplete="off"
            hint="Its beginning is enough. Empty, it finds everyone."
          />
          <Button isBusy={isBusy} busy="Searching …">
            Search
          </Button>
        </Form>
      </section>
      <section class="card" aria-labelledby="found">
        <h2 id="found">{results.q ? `Starting with “${results.q}”` : 'Everyone, newest first'}</h2>
        <div class="stack">
          <p class="hint" role="status">
            {summaryOf(results.first)}
          </p>
          <Found key={results.count} {...results} />
        </div>
      </section>
      <Invite />
    </>
  );
}

/** Of the first page. */
function summaryOf({ data: { length }, nextCursor }: UsersFindOutput): string {
  const users = length === 1 ? 'One user' : `${number(length)} users`;
  if (nextCursor !== undefined) return `${users}, and more.`;
  return length === 0 ? 'Nobody was found.' : `${users}.`;
}

function Found({ q, first }: Results) {
  const { items, hasMore, isBusy, refusal, readMore } = usePages((cursor) => find(q, cursor), first);
  return (
    <>
      <ul class="entries">
        {items.map((user) => (
          <li key={user.id}>
            <Entry user={user} />
          </li>
        ))}
      </ul>
      {refusal && <Alert>{sessionEnded(refusal)?.message ?? sentenceFor(refusal)}</Alert>}
      {hasMore && (
        <Button kind="secondary" isBusy={isBusy} busy="One moment …" onClick={() => void readMore()}>
          Show more
        </Button>
      )}
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
      <p class="hint">{[`Since ${date(createdAt)}`, ...standingOf(user)].join(', ')}</p>
    </div>
  );
}
