import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { UploadState, User } from '../../../entities/index.ts';
import { logIn, type Opened, type OpenedRules, openRules, procedures } from '../rig/rules.ts';

/** What other services read, and the uploads that users and services see. */
let opened: Opened;
let rules: OpenedRules;
let ada: User;
beforeAll(async () => {
  opened = await openRules('services', { env: { LIMIT_UPLOAD: '2/900', LIMIT_UPLOAD_CHECK: '2/900' } });
  ada = await opened.create().insertUser('ada');
});
beforeEach(() => {
  rules = opened.create();
});
afterAll(() => opened.close());

const refusal = (code: string, rest: object = {}) => ({ cause: expect.objectContaining({ code, ...rest }) });
const shop = () => procedures(rules, { service: 'shop' }).caller.service;
const as = async (user: User) => procedures(rules, { sessionToken: await logIn(rules, user) }).caller;

describe('a credential that a service received', () => {
  test('is that of a session, with its times', async () => {
    const token = await logIn(rules, ada);
    const found = await shop().session({ token });
    expect(found).toEqual({
      user: expect.objectContaining({ id: ada.id, email: ada.email, emailVerified: true }),
      session: { createdAt: expect.any(Number), expiresAt: expect.any(Number) },
      fresh: false,
    });
    const { createdAt, expiresAt } = found?.session ?? { createdAt: 0, expiresAt: 0 };
    expect([createdAt, expiresAt - createdAt]).toEqual([expect.closeTo(Date.now() / 1000, -2), 7 * 24 * 60 * 60]);
  });

  test('is an access key, with its scopes', async () => {
    const { key, secret } = await (await as(ada)).keys.create({ name: 'key', scopes: ['profile:read'] });
    expect(await shop().session({ token: secret })).toMatchObject({
      user: { id: ada.id },
      scopes: ['profile:read'],
      credential: { kind: 'key', id: key.id },
    });
  });

  test.each(['', 'x'.repeat(43), 'unknown'])('is none: "%s"', async (token) => {
    expect(await shop().session({ token })).toBeNull();
  });
});

test('users are read by at most a hundred ids, in their order, unknown ones left out', async () => {
  const other = await rules.insertUser(`other${Date.now()}`);
  const { users } = await shop().users({ ids: [other.id, 'nobody', ada.id, other.id] });
  expect(users.map(({ id }) => id)).toEqual([other.id, ada.id]);
  await expect(shop().users({ ids: Array(101).fill(ada.id) })).rejects.toMatchObject({ code: 'BAD_REQUEST' });
});

test('a service ends the sessions of a user, which its event names', async () => {
  const user = await rules.insertUser(`ended${Date.now()}`);
  const caller = await as(user);
  expect(await shop().endSessions({ userId: user.id })).toMatchObject({
    message: 'All sessions of the user were ended.',
  });
  await expect(caller.profile.get()).rejects.toMatchObject(refusal('UNAUTHENTICATED'));
  const actors = await rules.database.query((tables) =>
    tables
      .selectFrom('activity')
      .select('actor')
      .where('user_id', '=', user.id)
      .where('kind', '=', 'sessions-ended')
      .execute(),
  );
  expect(actors).toEqual([{ actor: 'service:shop' }]);
  for (const userId of ['nobody', `user_${crypto.randomUUID()}`])
    await expect(shop().endSessions({ userId })).rejects.toMatchObject(refusal('NOT_FOUND'));
});

test.each<[string, object]>([
  ['after nothing', { after: -1 }],
  ['a page of none', { after: 0, limit: 0 }],
  ['a page above a thousand', { after: 0, limit: 1001 }],
  ['an unknown type', { after: 0, types: 'user.created,none' }],
  ['a long wait', { after: 0, waitSeconds: 26 }],
])('events are refused for %s', async (_, input) => {
  await expect(shop().events(input as { after: number })).rejects.toMatchObject({ code: 'BAD_REQUEST' });
});

let count = 0;
const nameAt = (at: number) => `00000000-0000-4000-8000-${String(at).padStart(12, '0')}.png`;

/** A stored upload of the user. */
async function stored({ id }: User, changes: { state?: UploadState; isPrivate?: boolean; finding?: string } = {}) {
  const name = nameAt(++count);
  const { state = 'kept', isPrivate = false, finding = null } = changes;
  await rules.database.write((tables) =>
    tables
      .insertInto('uploads')
      .values({
        object_key: `${isPrivate ? 'private' : 'uploads'}/${name}`,
        user_id: id,
        purpose: 'direct',
        content_type: 'image/png',
        size: 7,
        state,
        expires_at: 1,
        created_at: 1_700_000_000_000 + count,
        variants_size: 0,
        finding,
      })
      .execute(),
  );
  return name;
}

describe('uploads', () => {
  test.each<[UploadState, string]>([
    ['expected', 'pending'],
    ['pending', 'pending'],
    ['kept', 'stored'],
    ['replaced', 'replaced'],
  ])('in the state %s are shown as %s', async (state, shown) => {
    const user = await rules.insertUser(`uploads${++count}`);
    const name = await stored(user, { state });
    const { data } = await (await as(user)).upload.list();
    expect(data).toEqual([
      {
        name,
        key: `uploads/${name}`,
        visibility: 'public',
        url: expect.stringContaining(name),
        contentType: 'image/png',
        size: 7,
        purpose: 'direct',
        state: shown,
        createdAt: 1_700_000_000,
      },
    ]);
  });

  test('are listed newest first, in pages, public and private ones', async () => {
    const user = await rules.insertUser(`pages${++count}`);
    const names = [];
    for (const isPrivate of [false, true, false, true, false]) names.unshift(await stored(user, { isPrivate }));
    const { upload } = await as(user);
    const listed = [];
    let cursor: string | undefined;
    do {
      const page = await upload.list({ limit: 1, cursor });
      listed.push(...page.data);
      cursor = page.nextCursor;
    } while (cursor !== undefined && listed.length <= names.length);
    expect(listed.map(({ name }) => name)).toEqual(names);
    expect(listed.map(({ visibility, url }) => [visibility, url === ''])).toEqual(
      [false, true, false, true, false].map((isPrivate) => [isPrivate ? 'private' : 'public', isPrivate]),
    );
    for (const wrong of ['', 'x', `1.${names[0]}x.y`, `x1.${names[0]}`, `1234567890123456.${names[0]}`])
      await expect(upload.list({ cursor: wrong })).rejects.toMatchObject({ code: 'BAD_REQUEST' });
  });

  test('are declared and asked about within limits', async () => {
    const { upload } = await as(await rules.insertUser(`limits${++count}`));
    const declare = () => upload.presign({ filename: 'a.png', contentType: 'image/png', size: 9 });
    const { parts: _, ...declared } = { parts: undefined, ...(await declare()) };
    expect(declared).toEqual({
      success: true,
      presignedUrl: expect.stringMatching(/^http/),
      publicUrl: expect.stringMatching(/^http/),
      key: expect.stringMatching(/^uploads\/[\da-f-]{36}\.png$/),
      expiresIn: expect.any(Number),
    });
    await declare();
    await expect(declare()).rejects.toMatchObject(refusal('RATE_LIMITED'));
    const { key } = declared;
    for (let i = 0; i < 2; i++)
      await expect(upload.confirm({ key })).rejects.not.toMatchObject(refusal('RATE_LIMITED'));
    for (const asks of [upload.confirm, upload.complete, upload.parts])
      await expect(asks({ key })).rejects.toMatchObject(refusal('RATE_LIMITED'));
  });

  test('are removed by their own user, once', async () => {
    const name = await stored(ada);
    const stranger = await as(await rules.insertUser(`stranger${++count}`));
    await expect(stranger.upload.remove({ name })).rejects.toMatchObject(refusal('NOT_FOUND'));
    const { upload } = await as(ada);
    expect(await upload.remove({ name })).toEqual({ success: true, message: 'The upload was deleted.' });
    await expect(upload.remove({ name })).rejects.toMatchObject(refusal('NOT_FOUND'));
  });
});
