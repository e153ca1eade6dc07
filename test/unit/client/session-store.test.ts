import { createClient, NetworkError } from 'account-client';
import { createSessionStore, type InitialSession, type SessionStoreOptions } from 'account-client/session';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

const url = 'https://accounts.example.com';
const ada = { id: 'user_1', name: 'Ada', email: 'ada@example.com', avatar: '', provider: 'password', createdAt: 1 };
const profileOf = (name: string) => ({ ...ada, name, bio: '', location: '', website: '', emailVerified: true });

const refusal = { message: 'Not logged in', code: -32001, data: { code: 'UNAUTHENTICATED', httpStatus: 401 } };

const otherUser = { message: 'Another user', code: -32009, data: { code: 'OTHER_USER', httpStatus: 409 } };

/** Answers of the service, in the order of its requests: a name is the user, null no session. */
type Answer = string | Known | null | Promise<string | null>;
type Known = NonNullable<InitialSession>;

const tabs: (() => void)[] = [];
const tabEvents = new EventTarget();
const page = Object.assign(new EventTarget(), { visibilityState: 'visible' });
beforeEach(() => {
  vi.useFakeTimers({ now: 0, toFake: ['Date'] });
  vi.stubGlobal('document', page);
  vi.stubGlobal('addEventListener', tabEvents.addEventListener.bind(tabEvents));
});
afterEach(() => {
  for (const close of tabs.splice(0)) close();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** A tab with a subscriber, and the names that it has seen: undefined while pending. */
function tab(
  answers: Answer[],
  {
    hasEnded = false,
    isOther = false,
    ...options
  }: Partial<SessionStoreOptions> & { hasEnded?: boolean; isOther?: boolean } = {},
) {
  const requests: string[] = [];
  const client = createClient({
    url,
    fetch: async (address) => {
      const path = new URL(String(address)).pathname;
      requests.push(path);
      if (String(address).includes('secondFactor')) return Response.json([{ error: refusal }]);
      if (isOther && !path.includes('profile')) return Response.json([{ error: otherUser }]);
      if (String(address).includes('logout'))
        return Response.json([hasEnded ? { error: refusal } : { result: { data: { success: true } } }]);
      const answer = answers.shift();
      if (answer === undefined) throw new TypeError('offline');
      const name = await answer;
      const known = typeof name === 'string' ? { user: profileOf(name) } : name;
      const result = known === null ? { error: refusal } : { result: { data: known } };
      // Checks of one tick share a request.
      return Response.json(path.split(',').map(() => result));
    },
  });
  const store = createSessionStore({ url, client, ...options });
  const nameNow = () => store.getSnapshot().user?.name ?? store.getSnapshot().user;
  const seen = [nameNow()];
  tabs.push(store.subscribe(() => seen.push(nameNow())));
  return { ...store, seen, requests };
}

const settled = (store: { seen: unknown[] }, ...expected: unknown[]) => expect.poll(() => store.seen).toEqual(expected);

/** How often the session was asked for so far: a later call of the same client has been answered. */
async function checksOf({ client, requests }: ReturnType<typeof tab>): Promise<number> {
  await client.auth.logout.mutate();
  return requests.filter((path) => path.includes('profile')).length;
}

test('is pending until the service answers, then is logged in or logged out', async () => {
  await settled(tab(['Ada']), undefined, 'Ada');
  const other = tab([null]);
  await settled(other, undefined, null);
  expect(other.getSnapshot()).toEqual({ status: 'logged-out', user: null });
  expect(other.getServerSnapshot().status).toBe('pending');
});

test('all subscribers share one request', async () => {
  const store = tab(['Ada', 'Bob']);
  const again = store.subscribe(() => undefined);
  again();
  tabs.push(store.subscribe(() => undefined));
  await settled(store, undefined, 'Ada');
  expect(store.requests).toEqual(['/trpc/profile.get']);
});

test.each([
  [{ user: profileOf('Ada') }, 'logged-in'],
  [null, 'logged-out'],
] as const)('an initial session %# is the first snapshot, without a request', async (initialSession, status) => {
  const store = tab([], { initialSession });
  expect([store.getSnapshot().status, store.getServerSnapshot()]).toEqual([status, store.getSnapshot()]);
  expect(store.requests).toEqual([]);
});

test('a snapshot is the same object until something changes', async () => {
  const store = tab(['Ada', 'Ada']);
  await settled(store, undefined, 'Ada');
  const before = store.getSnapshot();
  expect(await store.refresh()).toBe(before);
  expect(store.seen).toEqual([undefined, 'Ada']);
});

test('a logout and a new user reach the other tabs, without a request', async () => {
  const [one, two] = [tab(['Ada']), tab(['Ada'])];
  await settled(one, undefined, 'Ada');
  await settled(two, undefined, 'Ada');
  await one.logOut();
  await settled(two, undefined, 'Ada', null);
  two.set(profileOf('Grace'));
  await settled(one, undefined, 'Ada', null, 'Grace');
  expect([one.requests, two.requests]).toEqual([['/trpc/profile.get', '/trpc/auth.logout'], ['/trpc/profile.get']]);
});

test('names the administrator who acts for the user, in every tab, until the session is another one', async () => {
  const impersonation = { by: 'user_9', expiresAt: 1800 };
  const acting = { user: profileOf('Ada'), impersonation };
  const [one, two] = [tab(['Ada', acting]), tab(['Ada'])];
  await settled(one, undefined, 'Ada');
  await settled(two, undefined, 'Ada');
  await one.refresh();
  await expect.poll(two.getSnapshot).toEqual({ status: 'logged-in', ...acting });
  one.set(profileOf('Ada L.'));
  await expect.poll(two.getSnapshot).toEqual({ status: 'logged-in', user: profileOf('Ada L.'), impersonation });
  await one.logOut();
  one.set(profileOf('Ada'));
  await expect.poll(two.getSnapshot).toEqual({ status: 'logged-in', user: profileOf('Ada') });

  const rendered = tab([], { initialSession: { ...acting, impersonation: { by: 'user_9' } } });
  expect(rendered.getServerSnapshot()).toMatchObject({ impersonation: { by: 'user_9' } });
});

test('a browser without BroadcastChannel has a session in each tab', async () => {
  vi.stubGlobal('BroadcastChannel', undefined);
  const store = tab(['Ada'], { initialSession: null });
  await store.refresh();
  await store.logOut();
  expect(store.seen).toEqual([null, 'Ada', null]);
});

test('a page that a server rendered for another user makes the other tabs ask', async () => {
  const other = tab(['Grace', 'Grace'], { initialSession: null });
  const same = tab([], { initialSession: { user: profileOf('Ada') } });
  tab([], { initialSession: { user: profileOf('Ada L.') } });
  await settled(other, null, 'Grace');
  expect(same.requests).toEqual([]);
});

test('a page that a server rendered before the last login learns of it', async () => {
  const other = tab(['Grace', 'Grace']);
  await settled(other, undefined, 'Grace');
  await settled(tab([], { initialSession: null }), null, 'Grace');
  expect(other.seen).toEqual([undefined, 'Grace']);
});

test('a check that a newer one has overtaken corrects no other tab', async () => {
  const [first, second] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  const store = tab([first.promise, second.promise], { initialSession: null });
  const one = tab([], { initialSession: { user: profileOf('Ada') } });
  await expect.poll(() => store.requests).toHaveLength(1);
  const two = tab([], { initialSession: { user: profileOf('Ada') } });
  await expect.poll(() => store.requests).toHaveLength(2);
  first.resolve('Ada');
  await checksOf(store);
  second.resolve('Ada');
  await settled(store, null, 'Ada');
  await store.logOut();
  await settled(one, 'Ada', null);
  await settled(two, 'Ada', null);
});

test('a tab that a server rendered during a check is corrected by the check that overtakes it', async () => {
  const [first, second] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  const store = tab(['Ada', first.promise, second.promise]);
  await settled(store, undefined, 'Ada');
  const outdated = tab([], { initialSession: null });
  await expect.poll(() => store.requests).toHaveLength(2);
  tab([], { initialSession: { user: profileOf('Ada') } });
  await expect.poll(() => store.requests).toHaveLength(3);
  first.resolve('Ada');
  await checksOf(store);
  second.resolve('Ada');
  await expect.poll(() => outdated.getSnapshot().user?.name).toBe('Ada');
});

test('a logout of a session that has ended is one', async () => {
  const store = tab([], { initialSession: { user: profileOf('Ada') }, hasEnded: true });
  await store.logOut();
  expect(store.seen).toEqual(['Ada', null]);
});

test('a logout in the session of another user ends nothing, and the page shows that user', async () => {
  const store = tab(['Ada', 'Grace'], { isOther: true });
  await settled(store, undefined, 'Ada');
  await expect(store.logOut()).rejects.toThrow('Another user');
  await settled(store, undefined, 'Ada', 'Grace');
});

test('a pending login that is over does not end the session: the check decides', async () => {
  const [store, other] = [tab(['Ada', 'Ada', null]), tab(['Ada'])];
  await settled(store, undefined, 'Ada');
  await settled(other, undefined, 'Ada');
  const code = () => store.client.auth.secondFactor.mutate({ code: '123456' });
  await expect(code()).rejects.toThrow('Not logged in');
  await expect.poll(() => checksOf(store)).toBe(2);
  expect([store.seen, other.seen]).toEqual([
    [undefined, 'Ada'],
    [undefined, 'Ada'],
  ]);
  await expect(code()).rejects.toThrow('Not logged in');
  await settled(store, undefined, 'Ada', null);
  await settled(other, undefined, 'Ada', null);
  expect(await checksOf(store)).toBe(3);
});

test('an answer older than the login of a tab that a server rendered is dropped', async () => {
  const { promise, resolve } = Promise.withResolvers<null>();
  const store = tab(['Ada', promise, 'Ada']);
  await settled(store, undefined, 'Ada');
  const refreshed = store.refresh();
  await expect.poll(() => store.requests).toHaveLength(2);
  tab([], { initialSession: { user: profileOf('Ada') } });
  await expect.poll(() => store.requests).toHaveLength(3);
  resolve(null);
  await refreshed;
  expect(store.seen).toEqual([undefined, 'Ada']);
});

test('tabs of another service learn nothing', async () => {
  const store = tab(['Ada', 'Ada']);
  const foreign = tab([], { url: 'https://other.example.com', initialSession: { user: profileOf('Bob') } });
  const same = tab([], { initialSession: { user: profileOf('Ada') } });
  await settled(store, undefined, 'Ada');
  await store.logOut();
  await settled(same, 'Ada', null);
  expect(foreign.seen).toEqual(['Bob']);
});

test('an answer that a logout has overtaken is dropped', async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const store = tab([promise, null]);
  await expect.poll(() => store.requests).toHaveLength(1);
  store.set(null);
  resolve('Ada');
  await store.refresh();
  expect(store.seen).toEqual([undefined, null]);
});

test('checks again when the tab is shown after a while, and not before', async () => {
  const store = tab(['Ada', null], { recheckSeconds: 60 });
  await settled(store, undefined, 'Ada');
  const show = () => page.dispatchEvent(new Event('visibilitychange'));
  vi.setSystemTime(59_999);
  show();
  expect(await checksOf(store)).toBe(1);
  vi.setSystemTime(60_000);
  page.visibilityState = 'hidden';
  show();
  expect(await checksOf(store)).toBe(1);
  page.visibilityState = 'visible';
  show();
  await settled(store, undefined, 'Ada', null);
});

test('checks a page of the back-forward cache at once', async () => {
  const store = tab([null], { initialSession: { user: profileOf('Ada') } });
  tabEvents.dispatchEvent(new Event('pageshow'));
  expect(await checksOf(store)).toBe(0);
  tabEvents.dispatchEvent(Object.assign(new Event('pageshow'), { persisted: true }));
  await settled(store, 'Ada', null);
});

test('a failed check keeps what is known and names the error, until the next one', async () => {
  const store = tab(['Ada']);
  await settled(store, undefined, 'Ada');
  expect(await store.refresh()).toMatchObject({ status: 'logged-in', error: expect.any(NetworkError) });
  const offline = tab([]);
  await expect.poll(() => offline.getSnapshot().error).toBeInstanceOf(NetworkError);
  expect(offline.getSnapshot().status).toBe('pending');
});

test('after the last subscriber nothing is watched', async () => {
  const store = tab(['Ada', 'Bob']);
  await settled(store, undefined, 'Ada');
  for (const close of tabs.splice(0)) close();
  vi.setSystemTime(1e9);
  page.dispatchEvent(new Event('visibilitychange'));
  expect(await checksOf(store)).toBe(1);
});

test('a store that had no subscribers for a while checks again', async () => {
  const store = tab(['Ada', null]);
  await settled(store, undefined, 'Ada');
  for (const close of tabs.splice(0)) close();
  tab([], { initialSession: { user: profileOf('Ada') } }).set(null);
  const seen: unknown[] = [];
  tabs.push(store.subscribe(() => seen.push(store.getSnapshot().user)));
  await expect.poll(() => seen).toEqual([null]);
});

test('names the pages of the service, which lead back', () => {
  const { pageUrl } = tab([], { url: `${url}/`, initialSession: null });
  expect(pageUrl('/login', 'https://app.example.com/?a=1&b')).toBe(
    `${url}/login?returnTo=https%3A%2F%2Fapp.example.com%2F%3Fa%3D1%26b`,
  );
  vi.stubGlobal('location', { href: 'https://app.example.com/here' });
  expect(pageUrl('/register')).toBe(`${url}/register?returnTo=https%3A%2F%2Fapp.example.com%2Fhere`);
  expect(pageUrl('/dashboard')).toBe(`${url}/dashboard`);
});
