import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { beforeAll, describe, expect, test } from 'vitest';
import { freshEmail } from '../../rig/servers/address.ts';
import { createKey } from '../rig/key-scenario.ts';
import { administrator, expectRefusal, inEveryForm, loggedIn, registered, verified } from '../rig/scenario.ts';

const LISTED = ['avatar', 'createdAt', 'email', 'id', 'name', 'provider'];
const PUBLIC = ['avatar', 'bio', 'createdAt', 'email', 'id', 'location', 'name', 'provider', 'website'];
const PROFILE = [
  'avatar',
  'bio',
  'createdAt',
  'email',
  'emailVerified',
  'id',
  'location',
  'name',
  'provider',
  'website',
];

inEveryForm((scenario, surface) => {
  // checks: 49
  test('each answer has exactly the documented fields', async () => {
    const { call } = scenario();
    const { session, id, email, name } = await loggedIn(scenario());
    const list = await call('users.list');
    for (const user of list.data.data) expect(Object.keys(user).sort()).toEqual(LISTED);
    const one = await call('users.get', { id });
    expect(Object.keys(one.data.data).sort()).toEqual(PUBLIC);
    const profile = await call('profile.get', undefined, { session });
    expect(Object.keys(profile.data.user).sort()).toEqual(PROFILE);
    expect(profile.data.user).toMatchObject({ id, email, name, provider: 'email', emailVerified: true });
    const age = Date.now() / 1000 - profile.data.user.createdAt;
    expect(age).toBeGreaterThanOrEqual(0);
    expect(age).toBeLessThan(60);
  });

  test('the own profile names the role of an administrator, and only to a session', async () => {
    const { call } = scenario();
    const { session } = await administrator(scenario());
    const own = await call('profile.get', undefined, { session });
    expect(own.data.role).toBe('admin');
    expect(Object.keys(own.data.user).sort()).toEqual(PROFILE);
    const { secret } = await createKey(scenario(), session, { scopes: ['profile:read', 'email'] });
    for (const key of [secret, (await createKey(scenario(), session, { scopes: ['profile:read'] })).secret])
      expect((await call('profile.get', undefined, { key })).data).not.toHaveProperty('role');
    expect((await call('profile.get', undefined, await loggedIn(scenario()))).data).not.toHaveProperty('role');
    expect((await call('users.get', { id: own.data.user.id })).data.data).not.toHaveProperty('role');
  });

  // checks: 49
  test.each([
    'user_',
    '..%2f',
    "user_1'--",
    'user_01931b6e-7a54-7c3c-9d0a-3f4f5f6a7b8c',
    '../../..',
    'x'.repeat(10_000),
    '\0',
    'é',
  ])('the id %s is 404', async (id) => {
    expectRefusal(await scenario().call('users.get', { id }), 404, 'NOT_FOUND', 'User not found');
  });

  /** All pages, each with at most `limit` rows. */
  const pagesOf = async (query: { limit: number; q?: string }) => {
    const { call } = scenario();
    const pages: { id: string; name: string; email: string }[][] = [];
    for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
      const { data } = await call('users.list', { ...query, ...(cursor && { cursor }) });
      expect(data.data.length).toBeLessThanOrEqual(query.limit);
      pages.push(data.data);
      cursor = data.nextCursor;
      expect('nextCursor' in data).toBe(cursor !== undefined);
    }
    return pages;
  };

  test('the list is newest first, and its pages miss and repeat nobody', async () => {
    const ids: string[] = [];
    const count = async () => (await scenario().stack.database('select id from users')).length;
    // Makes the last page full: no page follows it.
    while (ids.length < 5 || (await count()) % 3 !== 0) ids.push((await registered(scenario())).id);
    const pages = await pagesOf({ limit: 3 });
    expect(pages).toHaveLength((await count()) / 3);
    const listed = pages.flat().map(({ id }) => id);
    expect(listed.slice(0, ids.length)).toEqual(ids.toReversed());
    expect(listed).toEqual(listed.toSorted().toReversed());
    expect(new Set(listed).size).toBe(listed.length);
    expect(await count()).toBe(listed.length);
  });

  test('matches are ordered by name and id, then those by email, and the pages miss and repeat nobody', async () => {
    const tag = `page${surface}${`${Math.random()}`.slice(2, 10)}`;
    const named: string[] = [];
    for (const name of ['b', 'a', 'a', 'É', 'a', 'f']) {
      named.push((await registered(scenario(), { name: `${tag} ${name}` })).id);
    }
    const [b, a1, a2, e, a3, f] = named;
    // Matches by both, shown once.
    const both = (await registered(scenario(), { name: tag.toUpperCase(), email: freshEmail(tag) })).id;
    const addressed = [];
    for (const end of ['2', '1', '3']) {
      addressed.push((await registered(scenario(), { email: `${tag}${end}@example.test` })).id);
    }
    const [second, first, third] = addressed;
    for (const limit of [1, 2, 3, 4, 100]) {
      const pages = await pagesOf({ limit, q: tag });
      expect(pages.flat().map(({ id }) => id)).toEqual([both, a1, a2, a3, b, e, f, first, second, third]);
      // With so few matches, only the last page may be short.
      expect(pages.slice(0, -1).every(({ length }) => length === limit)).toBe(true);
      expect(pages).toHaveLength(Math.ceil(10 / limit));
    }
  });

  test('hundreds of users who match by both name and email are each shown once', async () => {
    const { stack } = scenario();
    const tag = `both${surface}${`${Math.random()}`.slice(2, 10)}`;
    const { id } = await registered(scenario());
    const [row] = await stack.database('select * from users where id = ?', [id]);
    const columns = Object.keys(row ?? {});
    const people = Array.from({ length: 450 }, (_, i) => ({
      ...row,
      id: `user_${randomUUID()}`,
      name: i < 449 ? `${tag} ${i}` : 'Nobody',
      search_name: i < 449 ? `${tag} ${i}` : 'nobody',
      email: `${tag}.${String(i).padStart(3, '0')}@example.test`,
    }));
    await stack.database(
      `insert into users (${columns.join(', ')}) values ${people.map(() => `(${columns.map(() => '?').join(', ')})`).join(', ')}`,
      people.flatMap((person) =>
        columns.map((column) => (person as Record<string, string | number | null>)[column] ?? null),
      ),
    );
    const pages = await pagesOf({ limit: 100, q: tag });
    expect(new Set(pages.flat().map(({ id }) => id)).size).toBe(450);
    expect(pages.flat().at(-1)?.name).toBe('Nobody');
    await stack.database(`delete from users where email like '${tag}.%'`);
  });

  test('q matches the beginning of a name or email, without wildcards', async () => {
    const { call } = scenario();
    const tag = `${Math.random()}`.slice(2, 10);
    const named = await registered(scenario(), { name: `Zoë ${tag}` });
    const addressed = await registered(scenario(), { email: `zoë_%${tag}@x.test`.replace('ë', 'e').replace('%', 'p') });
    const find = async (q: string) => {
      const { data } = await call('users.list', { q });
      return data.data.map(({ id }: { id: string }) => id);
    };
    expect(await find(`zoë ${tag}`)).toEqual([named.id]);
    expect(await find(`ZOE_P${tag}`)).toEqual([addressed.id]);
    expect(await find(`zoe%${tag}`)).toEqual([]);
    expect(await find(tag)).toEqual([]);
    expect(await find('%')).toEqual([]);
    expect(await find("' or 1=1 -- ")).toEqual([]);
    expect(await find(`  ＺＯE\u0308\u200d\u00a0${tag}`)).toEqual([named.id]);
  });

  test.each([
    ['Straße', 'STRASSE', 'strasse', 'Straſse'],
    ['Ἀθηνᾶ Παλλάς', 'αθηνα παλλασ', 'ΑΘΗΝΑ ΠΑΛΛΆΣ'],
    ['Łukasz Żółw', 'łukasz zołw', 'ŁUKASZ ŻÓŁW'],
    ['Иван Йорк', 'ИВАН ЙОРК', 'иван иорк'],
    ['İpek Işık', 'ipek isik', 'IPEK IŞIK'],
    ['김철수', '김철수'.normalize('NFD')],
    ['नमस्ते', 'नमस्ते'],
  ])('%s is found by %j', async (name, ...queries) => {
    const { id } = await registered(scenario(), { name });
    for (const q of queries) {
      const { data } = await scenario().call('users.list', { q });
      expect(data.data.map((user: { id: string }) => user.id)).toContain(id);
    }
  });

  test('after a change of name, only the new one is found', async () => {
    const { call } = scenario();
    const tag = `${Math.random()}`.slice(2, 10);
    const { session, id } = await loggedIn(scenario(), { name: `Before ${tag}` });
    await call('profile.update', { name: `After ${tag}` }, { session });
    expect((await call('users.list', { q: `after ${tag}` })).data.data).toMatchObject([{ id }]);
    expect((await call('users.list', { q: `before ${tag}` })).data.data).toEqual([]);
  });

  test.each([' ', '\u0001', '\0', '\u0301', '\u200d', '\ufe0f', '\u3164', '\u{e0001}', '\u{10ffff}', '\u00ad \u2060'])(
    'q=%j without a searchable character is refused',
    async (q) => {
      const reply = await scenario().call('users.list', { q });
      expectRefusal(reply, 400, 'VALIDATION_FAILED');
      expect(reply.details).toHaveProperty(['q', 'rule'], 'not_searchable');
    },
  );

  test('a cursor works only for its own list or search', async () => {
    const { call } = scenario();
    const { id } = await registered(scenario(), { name: 'Cursor One' });
    await registered(scenario(), { name: 'Cursor Two' });
    const { nextCursor } = (await call('users.list', { q: 'cursor', limit: 1 })).data;
    const forged = (position: unknown) => Buffer.from(JSON.stringify(position)).toString('base64url');
    for (const input of [
      { cursor: nextCursor },
      { q: 'other', cursor: nextCursor },
      { q: 'cursor', cursor: id },
      { q: 'cursor', cursor: `${nextCursor}A` },
      { q: 'cursor', cursor: '' },
      { q: 'cursor', cursor: forged(null) },
      { q: 'cursor', cursor: forged({ name: 'cursor é', id: 'é' }) },
      { q: 'cursor', cursor: forged({ name: 'cursor', id }).padEnd(9000, 'A') },
      { q: 'cursor', cursor: forged({ email: 'cursor\u00e9' }) },
      { q: 'cursor', cursor: forged({ email: 'cursor', id }) },
    ]) {
      const reply = await call('users.list', input);
      expectRefusal(reply, 400, 'VALIDATION_FAILED');
      expect(reply.details).toHaveProperty(['cursor', 'rule'], 'invalid_cursor');
    }
    expect((await call('users.list', { q: 'CURSOR', limit: 1, cursor: nextCursor })).data.data).toHaveLength(1);
  });

  test.each([{ limit: 0 }, { limit: 101 }, { limit: 1.5 }, { limit: 'x' }, { cursor: 'x' }, { q: 'x'.repeat(300) }])(
    'a page with %j is refused',
    async (input) => {
      const reply = await scenario().call('users.list', input);
      expectRefusal(reply, 400, 'VALIDATION_FAILED');
      expect(reply.details).toHaveProperty(Object.keys(input)[0] ?? '');
    },
  );

  test('only sent fields change, and the answer is what is stored', async () => {
    const { call } = scenario();
    const { session, name } = await loggedIn(scenario());
    const update = (input: unknown) => call('profile.update', input, { session });
    const all = {
      bio: 'Writes.\nA lot.',
      location: 'London',
      website: 'https://ada.test/',
      avatar: 'https://ada.test/a',
    };
    const first = await update(all);
    expect(first.data).toMatchObject({ success: true, user: { name, ...all } });
    const second = await update({ name: '  Countess  ', bio: '' });
    expect(second.data.user).toMatchObject({ ...all, name: 'Countess', bio: '' });
    const third = await update({ website: '', avatar: null, location: '   ' });
    expect(third.data.user).toMatchObject({ name: 'Countess', website: '', avatar: '', location: '' });
    const { data } = await call('profile.get', undefined, { session });
    expect(data.user).toEqual(third.data.user);
    expect((await update({})).data.user).toEqual(third.data.user);
  });

  test('unset fields are "" inEveryForm, and a profile can be written back as read', async () => {
    const { call } = scenario();
    const { session, id, name } = await loggedIn(scenario(), { name: `Unset ${Math.random()}` });
    const empty = { bio: '', location: '', website: '', avatar: '' };
    const read = (await call('profile.get', undefined, { session })).data.user;
    expect(read).toMatchObject(empty);
    expect((await call('users.get', { id })).data.data).toMatchObject(empty);
    expect((await call('users.list', { q: name })).data.data).toMatchObject([{ id, avatar: '' }]);
    expect((await call('profile.update', { bio: 'Writes.' }, { session })).data.user).toEqual({
      ...read,
      bio: 'Writes.',
    });
    expect((await call('profile.update', read, { session })).data.user).toEqual(read);
    const cleared = await call(
      'profile.update',
      { bio: null, location: null, website: null, avatar: null },
      { session },
    );
    expect(cleared.data.user).toEqual(read);
  });

  // checks: 50
  test('no other field and no other user changes', async () => {
    const { call, stack } = scenario();
    const { session, id } = await loggedIn(scenario());
    await verified(scenario());
    const snapshot = () => stack.database('select * from users order by id');
    const before = await snapshot();
    const reply = await call(
      'profile.update',
      {
        id: 'user_x',
        email: 'evil@example.test',
        emailVerified: false,
        provider: 'google',
        role: 'admin',
        createdAt: 1,
        epoch: 7,
        sessionEpoch: 7,
        session_epoch: 7,
        passwordHash: 'x',
        password_hash: 'x',
      },
      { session },
    );
    expect(reply.data.user.id).toBe(id);
    expect(await snapshot()).toEqual(before);
  });

  describe('a profile', () => {
    let session: string;
    beforeAll(async () => {
      ({ session } = await loggedIn(scenario()));
    });

    const links = [
      'javascript:alert(1)',
      'data:text/html,x',
      'vbscript:x',
      'file:///etc/passwd',
      '//evil.test',
      'https:evil.test',
      'https:\\\\evil.test',
      ' https://ada.test',
      'https://u:p@ada.test',
      'https://ada.test/\0',
      'https://ada.test/\n',
      `https://ada.test/${'x'.repeat(2048)}`,
      `https://${'x'.repeat(90_000)}`,
    ];
    // checks: 51
    test.each([
      ['name', 'a', 'too_short'],
      ['name', 'a'.repeat(101), 'too_long'],
      ['name', '', 'too_short'],
      ['name', null, 'invalid_type'],
      ['name', 5, 'invalid_type'],
      ['bio', 'a'.repeat(501), 'too_long'],
      ['bio', 'a\0', 'invalid_characters'],
      ['bio', ['a'], 'invalid_type'],
      ['bio', 'x'.repeat(90_000), 'too_long'],
      ['location', 'a'.repeat(101), 'too_long'],
      ['location', {}, 'invalid_type'],
      ['avatar', true, 'invalid_type'],
      ...['website', 'avatar'].flatMap((field) => links.map((link) => [field, link, 'invalid_url'])),
    ] as [field: string, value: unknown, rule: string][])('takes no %s of %j', async (field, value, rule) => {
      const { call } = scenario();
      const profile = async () => (await call('profile.get', undefined, { session })).data.user;
      const before = await profile();
      const reply = await call('profile.update', { bio: 'Other', [field]: value }, { session });
      expectRefusal(reply, 400, 'VALIDATION_FAILED');
      expect(reply.details).toHaveProperty([field, 'rule'], rule);
      expect(await profile()).toEqual(before);
    });

    // checks: 51
    test.each(['website', 'avatar'])('of a %s of a megabyte is 413', async (field) => {
      const link = `https://ada.test/${'x'.repeat(2 ** 20)}`;
      expectRefusal(await scenario().call('profile.update', { [field]: link }, { session }), 413, 'PAYLOAD_TOO_LARGE');
    });
  });

  test('500 emoji fit into a bio', async () => {
    const { session } = await loggedIn(scenario());
    const reply = await scenario().call('profile.update', { bio: '🎉'.repeat(500) }, { session });
    expect(reply.data.user.bio).toBe('🎉'.repeat(500));
  });

  // checks: 51
  test('the service never fetches the links of a profile', async () => {
    const { call, stack } = scenario();
    let connections = 0;
    const listener = createServer((_, response) => response.end()).on('connection', () => {
      connections++;
    });
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    const { port } = listener.address() as { port: number };
    const url = `http://127.0.0.1:${port}/picture`;
    const { session, id, email } = await loggedIn(scenario());
    expect((await call('profile.update', { website: url, avatar: url }, { session })).status).toBe(200);
    expect((await call('users.get', { id })).data.data.avatar).toBe(url);
    // Work after the answer has started by the time a later mail arrives.
    await call('auth.forgotPassword', { email });
    await stack.waitForMail({ to: email, subject: 'Reset' });
    expect(connections).toBe(0);
    expect((await fetch(url)).status).toBe(200);
    expect(connections).toBe(1);
    listener.close();
  });

  test('reading and writing a profile require a session', async () => {
    const { call } = scenario();
    for (const [procedure, input] of [
      ['profile.get', undefined],
      ['profile.update', { name: 'Ada' }],
    ] as const) {
      expectRefusal(await call(procedure, input), 401, 'UNAUTHENTICATED');
      expectRefusal(await call(procedure, input, { session: 'A'.repeat(43) }), 401, 'UNAUTHENTICATED');
    }
  });

  test('health returns status, time and version', async () => {
    const { status, data } = await scenario().call('health');
    expect(status).toBe(200);
    expect(data).toEqual({
      status: 'ok',
      db: 'connected',
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      version: expect.stringMatching(/^\d+\.\d+\.\d+(?:\+g[\da-f]{8})?$/),
    });
  });
});
