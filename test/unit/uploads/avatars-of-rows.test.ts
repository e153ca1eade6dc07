import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { backgroundJob } from '../../../server/activity/caller.ts';
import { createActivity } from '../../../server/activity/index.ts';
import type { Database } from '../../../server/parts/database/contract.ts';
import { openDatabase } from '../../../server/parts/database/index.ts';
import { createAvatars } from '../../../server/uploads/avatars.ts';
import { createDeletions } from '../../../server/uploads/deletions.ts';
import { createUploadLeases } from '../../../server/uploads/leases.ts';
import { createRecords, type UploadRecord } from '../../../server/uploads/records.ts';
import { createUsage } from '../../../server/uploads/usage.ts';
import { temporaryDirectory } from '../../rig/servers/custodian.ts';
import { MINUTE, memoryStorage, uploadRows } from './upload-rows.ts';

const DAY = 24 * 60 * MINUTE;
const VARIANTS = '[[64,64,99]]';

let database: Database;
let rows: ReturnType<typeof uploadRows>;
beforeAll(async () => {
  database = await openDatabase({ databaseUrl: undefined, dataDir: temporaryDirectory('avatars-of-rows') });
  await database.migrate();
  rows = uploadRows(database);
});
afterAll(() => database.close());
beforeEach(() => rows.clear());

function avatarsOf({ ownOnly = false } = {}) {
  const { storage } = memoryStorage();
  const usage = createUsage(database, { quota: 1e9 });
  const activity = createActivity(database, { keptDays: 1 });
  const leases = createUploadLeases(database, 'all');
  const deletions = createDeletions({ database, activity, objects: storage, usage, leases });
  const avatars = createAvatars({ database, activity, objects: storage, deletions, ownOnly });
  const { find } = createRecords(database, usage, activity);
  return {
    ...avatars,
    upload: async (key: string) => (await find(key)) as UploadRecord,
    /** Ada's profile changes from one avatar to another. */
    change: (former: string | null, next: string | null) =>
      database.change((tables) => avatars.changed(tables, { userId: 'ada', former, next })),
  };
}

const urlOf = (key: string) => `https://x.test/${key}`;
const insertAvatar = (name: string, row: object = {}) => rows.insert(name, { purpose: 'avatar', ...row });

describe('an avatar that a profile stops showing', () => {
  test.each([
    ['is replaced for a day, if its user has uploaded it', {}, true],
    ['that was replaced before is so for another day', { state: 'replaced' }, true],
    ['that was replaced before, of another user too', { state: 'replaced', user_id: 'eve' }, true],
    ['of another user stays', { user_id: 'eve' }, false],
    ['that was uploaded as a post stays', { purpose: 'post' }, false],
    ['that is being deleted stays so', { state: 'doomed' }, false],
  ])('%s', async (_title, row, isReplaced) => {
    const [key, other] = [await insertAvatar('a', row), await insertAvatar('b')];
    await avatarsOf().change(`${urlOf(key)}?v=1`, null);
    const { state, due_at } = (await rows.of(key)) ?? {};
    expect(state).toBe(isReplaced ? 'replaced' : ('state' in row && row.state) || 'kept');
    if (isReplaced) expect(Math.abs(Number(due_at) - Date.now() - DAY)).toBeLessThan(5000);
    else expect(due_at).toBeNull();
    expect(await rows.of(other)).toMatchObject({ state: 'kept', due_at: null });
  });

  test('is not replaced by another variant of itself', async () => {
    const key = await insertAvatar('a');
    await avatarsOf().change(urlOf(key), urlOf(key.replace('.webp', '_64.webp')));
    expect(await rows.of(key)).toMatchObject({ state: 'kept', due_at: null });
  });

  test('is replaced when another one is shown', async () => {
    const [former, next] = [await insertAvatar('a'), await insertAvatar('b')];
    await avatarsOf().change(urlOf(former), urlOf(next));
    expect([(await rows.of(former))?.state, (await rows.of(next))?.state]).toEqual(['replaced', 'kept']);
  });
});

describe('an avatar that a profile shows', () => {
  test.each([
    ['again is kept', 'ada', { state: 'replaced', due_at: 7 }, { state: 'kept', due_at: null }],
    [
      'of another user who has replaced it is not inspected',
      'eve',
      { state: 'replaced', due_at: 7 },
      { state: 'replaced', due_at: null },
    ],
    ['keeps its time while it is stored', 'ada', { state: 'expected', due_at: 7 }, { state: 'expected', due_at: 7 }],
  ])('%s', async (_title, user_id, row, expected) => {
    const [key, other] = [await insertAvatar('a', { ...row, user_id }), await insertAvatar('b', row)];
    await avatarsOf().change(null, urlOf(key));
    expect([await rows.of(key), await rows.of(other)]).toMatchObject([expected, row]);
  });

  test.each([
    ['its variants', { variants: VARIANTS }, true],
    ['those of a replaced one', { variants: VARIANTS, state: 'replaced', user_id: 'eve' }, true],
    ['no variants if it has none', { variants: '[]' }, false],
    ['no variants before they are made', {}, false],
    ['no variants of what is no image', { variants: VARIANTS, content_type: 'application/pdf' }, false],
    ['no variants while it is stored', { variants: VARIANTS, state: 'expected' }, false],
    ['no variants while it waits for the scanner', { variants: VARIANTS, state: 'pending' }, false],
    ['no variants in quarantine', { variants: VARIANTS, state: 'infected' }, false],
  ])('has %s', async (_title, row, hasVariants) => {
    const key = await insertAvatar('a', row);
    const avatarVariants = hasVariants ? `${key} ${VARIANTS}` : null;
    expect(await avatarsOf().change(null, urlOf(key))).toEqual({ avatar: urlOf(key), avatarVariants });
  });

  test('may be of another site, or none', async () => {
    const { change } = avatarsOf();
    for (const avatar of ['https://other.test/a.png', urlOf(rows.keyOf('unknown')), null])
      expect(await change('https://other.test/b.png', avatar)).toEqual({ avatar, avatarVariants: null });
  });

  test('is refused if it is being deleted', async () => {
    const key = await insertAvatar('a', { state: 'doomed' });
    await expect(avatarsOf().change(null, urlOf(key))).rejects.toMatchObject({
      code: 'VALIDATION_FAILED',
      details: { avatar: { rule: 'deleted', message: 'This image has been deleted' } },
    });
  });

  const ownUpload = {
    code: 'VALIDATION_FAILED',
    details: { avatar: { rule: 'own_upload', message: 'Must be the URL of an image that was uploaded here' } },
  };
  test.each([
    ['of another site', 'https://other.test/a.png', {}, false],
    ['that is unknown', urlOf('uploads/unknown.webp'), {}, false],
    ['that is no image', urlOf('uploads/a.webp'), { content_type: 'application/pdf' }, false],
    ['that is not yet stored', urlOf('uploads/a.webp'), { state: 'expected' }, false],
    ['that is an image', urlOf('uploads/a.webp'), {}, true],
    ['that is none', null, {}, true],
  ])('if it must be an own upload, one %s', async (_title, url, row, isAccepted) => {
    await insertAvatar('a', row);
    const changed = avatarsOf({ ownOnly: true }).change(null, url);
    if (isAccepted) expect(await changed).toEqual({ avatar: url, avatarVariants: null });
    else await expect(changed).rejects.toMatchObject(ownUpload);
  });
});

describe('the deletion of a replaced avatar', () => {
  test.each([
    ['replaced', null, true, 'doomed'],
    ['replaced', 'uploads/a.webp', false, 'replaced'],
    ['replaced', 'uploads/a_64.webp?v=1', false, 'replaced'],
    ['replaced', 'uploads/b.webp', true, 'doomed'],
    ['kept', null, false, 'kept'],
    ['doomed', null, false, 'doomed'],
  ] as const)('(%s) while a profile shows %s starts: %s', async (state, shown, starts, after) => {
    const key = await insertAvatar('a', { state, due_at: 7 });
    if (shown) await rows.insertUser(urlOf(shown));
    expect(await avatarsOf().startDeletionIfUnused(key)).toBe(starts);
    const row = await rows.of(key);
    expect(row?.state).toBe(after);
    if (!starts) expect(row?.due_at).toBe(state === 'replaced' ? null : 7);
    expect(await rows.events()).toEqual(starts ? [`ada upload-removed {"key":"${key}"}`] : []);
  });

  test('of an unknown one does not start', async () => {
    expect(await avatarsOf().startDeletionIfUnused(rows.keyOf('a'))).toBe(false);
  });
});

describe('the deletion by the owner', () => {
  test.each([
    ['kept', true],
    ['replaced', true],
    ['expected', true],
    ['pending', true],
    ['infected', false],
    ['doomed', false],
  ] as const)('of an upload that is %s starts: %s', async (state, starts) => {
    const key = await insertAvatar('a', { state });
    const { startDeletionByOwner, upload } = avatarsOf();
    expect(await startDeletionByOwner(await upload(key), backgroundJob)).toBe(starts);
    expect((await rows.of(key))?.state).toBe(starts ? 'doomed' : state);
  });

  test.each([
    ['that shows the image', 'uploads/a.webp', true],
    ['that shows a variant of it', 'uploads/a_64.webp?v=1', true],
    ['that shows another one', 'uploads/b.webp', false],
    ['without an avatar', null, false],
  ])('clears only the owner’s profile, and only one %s', async (_title, avatar, isCleared) => {
    const key = await insertAvatar('a');
    const url = avatar && urlOf(avatar);
    for (const id of ['ada', 'eve']) await rows.insertUser(url, id);
    const { startDeletionByOwner, upload } = avatarsOf();
    await startDeletionByOwner(await upload(key), backgroundJob);
    const users = await database.query((tables) =>
      tables.selectFrom('users').select(['id', 'avatar']).orderBy('id').execute(),
    );
    expect(users).toEqual([
      { id: 'ada', avatar: isCleared ? null : url },
      { id: 'eve', avatar: url },
    ]);
    expect((await rows.events()).sort()).toEqual([
      ...(isCleared ? ['ada profile-changed {"fields":"avatar"}'] : []),
      `ada upload-removed {"key":"${key}"}`,
    ]);
  });
});
