import type { UsersFindOutput } from 'account-client';
import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { TextField } from '../../form/fields.tsx';
import { Button, Form } from '../../form/form.tsx';
import { useForm } from '../../form/use-form.ts';
import { text } from '../../language/texts.ts';
import { bringIntoSight } from '../../parts-nav.tsx';
import { usePages } from '../../use-pages.ts';
import { sessionEnded } from '../session-ended.tsx';
import { ShowMore } from '../show-more.tsx';
import { addressOf, type Listing, listingOf } from './address.ts';
import { AdminPage } from './admin-page.tsx';
import { Tabs } from './tabs.tsx';
import { UserTable } from './user-table.tsx';

const A_PAGE = 20;

const find = (listing: Listing, cursor?: string) =>
  api.users.find.query({ limit: A_PAGE, ...listing, ...(cursor && { cursor }) });

/** The users. The URL has the search, the filter or the order, for a reload and for the way back from a user. */
export function Users() {
  const listing = listingOf(location.search);
  return (
    <AdminPage title={() => text('admin.nav.users')} read={() => find(listing)}>
      {(first) => (
        <>
          <Tabs current="users" />
          <Listed listing={listing} first={first} />
        </>
      )}
    </AdminPage>
  );
}

interface Results {
  listing: Listing;
  first: UsersFindOutput;
}

function Listed(initial: Results) {
  const [results, setResults] = useState({ ...initial, count: 0 });
  const { field, isBusy, form } = useForm({
    initial: { q: initial.listing.q ?? '' },
    async send(values) {
      const listing = { q: values.q.trim() || undefined };
      const first = await find(listing);
      setResults({ listing, first, count: results.count + 1 });
      history.replaceState(history.state, '', addressOf(listing));
      return undefined;
    },
    explain: sessionEnded,
  });
  return (
    <section class="card flush" aria-label={text('admin.nav.users')}>
      <search class="finder">
        <Form {...form}>
          <TextField
            field={field('q')}
            label={text('admin.users.query')}
            placeholder={text('admin.users.query')}
            type="letters"
            autocomplete="off"
          />
          <Button kind="secondary" icon="search" isBusy={isBusy} busy={text('admin.users.finding')}>
            {text('admin.users.find')}
          </Button>
        </Form>
        <Filters {...results.listing} />
      </search>
      <p class="summary hint" role="status">
        {summaryOf(results)}
      </p>
      <Found key={results.count} {...results} />
    </section>
  );
}

const standings = ['administrator', 'unverified', 'blocked', 'deleted'] as const;

const current = { 'aria-current': 'true', ref: bringIntoSight } as const;

/** A filter ends the search: each list is a stretch of one index. */
export const Filters = ({ q, standing, label = text('admin.filters.label') }: Listing & { label?: string }) => (
  <nav class="filters" aria-label={label}>
    <a href={addressOf({})} {...(!q && !standing && current)}>
      {text('admin.filters.everyone')}
    </a>
    {standings.map((name) => (
      <a key={name} href={addressOf({ standing: name })} {...(name === standing && current)}>
        {text(`admin.filters.${name}`)}
      </a>
    ))}
  </nav>
);

/** Whether this is the first page. */
function summaryOf({ listing: { q }, first: { data, nextCursor } }: Results): string {
  const count = data.length;
  const found =
    nextCursor !== undefined
      ? text('admin.users.foundAndMore', { count })
      : count === 0
        ? text('admin.users.nobody')
        : text('admin.users.found', { count });
  return q ? text('admin.users.foundBy', { query: q, found }) : found;
}

function Found({ listing, first }: Results) {
  const { items, ...pages } = usePages((cursor) => find(listing, cursor), first);
  return (
    <>
      {items.length > 0 && <UserTable users={items} listing={listing} />}
      <div class="more">
        <ShowMore {...pages} />
      </div>
    </>
  );
}
