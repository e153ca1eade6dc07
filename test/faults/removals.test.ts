import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callerOf } from '../contract/rig/callers.ts';
import { isAlive, logIn, PASSWORD, sessionIn } from '../contract/rig/scenario.ts';
import { png } from '../contract/uploads/corpus.ts';
import { imageForm, keyOf, sendForm, startUploading, type Uploading, uploader } from '../contract/uploads/storage.ts';
import { remainsOf } from '../rig/observe/remains.ts';
import { until } from '../rig/until.ts';
import { inRounds, patient } from './in-rounds.ts';
import { unlimited } from './load.ts';

/** Removals of deleted accounts by two instances, which are killed, or race with restores. */

const CYCLES = 12;
const USERS_A_CYCLE = 3;
const EVENTS = 2500;
const ROUNDS = 60;

let uploading: Uploading;
beforeAll(async () => {
  uploading = await startUploading('S3', unlimited, 2);
});
afterAll(() => uploading?.stop());

const caller = (n = 0) => patient(callerOf('rest', uploading.stack.services[n % 2]?.url ?? ''));
const database = (sql: string, parameters?: string[]) => uploading.stack.database(sql, parameters);

/** A user with two sessions, an image, and more events than a batch deletes. */
async function userWithData() {
  const person = await uploader(uploading);
  await logIn(caller(), person);
  const form = imageForm({ bytes: await png(16, 16), type: 'avatar' });
  const { body } = await sendForm(uploading, person.session, form);
  await caller()('profile.update', { avatar: body.url }, { session: person.session });
  const events = Array.from(
    { length: EVENTS },
    (_, i) => `('${i}-${person.id.slice(-24)}', '${person.id}', 'x', 'user', '', '', '', 1)`,
  );
  await database(
    `insert into activity (id, user_id, kind, actor, address, device, request_id, created_at) values ${events.join(', ')}`,
  );
  return { ...person, key: keyOf(body.url) };
}

const leave = async (session: string) =>
  expect((await caller()('account.delete', undefined, { session })).status).toBe(200);

/** As if the grace period, or a lease, had ended. */
const due = (ids: string[]) =>
  database(`update removals set due_at = 1 where user_id in (${ids.map(() => '?').join(', ')})`, ids);

/** As if the removals had started more than an hour ago. */
async function passHour() {
  await database('update outbox set created_at = created_at - 3600001');
  await database('update removals set begun_at = begun_at - 600001, due_at = 1 where begun_at is not null');
}

test(`${CYCLES} kill -9 of both instances during removals leave nothing of ${CYCLES * USERS_A_CYCLE} users`, async () => {
  const { stack, objects } = uploading;
  const people = await Promise.all(Array.from({ length: CYCLES * USERS_A_CYCLE }, userWithData));
  for (const { session } of people) await leave(session);
  const bystander = await uploader(uploading);
  /** Removals without a user row but with events left. */
  let amid = 0;
  for (let cycle = 0; cycle < CYCLES; cycle++) {
    const upTo = people.slice(0, (cycle + 1) * USERS_A_CYCLE).map(({ id }) => id);
    await due(upTo);
    // The job polls once a second. A kill right after its start hits any of its steps.
    const waiting = 'select id from users where deleted_at is not null';
    const before = (await database(waiting)).length;
    await until(async () => (await database(waiting)).length < before, { every: 5 });
    await pause(Math.random() * 100);
    await Promise.all(stack.services.map((service) => service.kill()));
    amid += (await database('select distinct user_id from activity where user_id not in (select id from users)'))
      .length;
    // The user's row is deleted first: an account is complete, or gone.
    const whole = await database(
      'select u.id, count(*) as events from users u join activity a on a.user_id = u.id group by u.id',
    );
    for (const { events } of whole.filter(({ id }) => upTo.includes(String(id)))) {
      expect(Number(events)).toBeGreaterThanOrEqual(EVENTS);
    }
    await Promise.all(stack.services.map((service) => service.restart()));
  }
  await due(people.map(({ id }) => id));
  await until(async () => (await database('select id from users where deleted_at is not null')).length === 0, {
    within: 30_000,
  });
  await until(async () => (await database("select object_key from uploads where state <> 'doomed'")).length === 0);
  // Leases of the killed processes are taken over once they expire.
  await database("update uploads set due_at = 1 where state = 'doomed'");
  await passHour();
  const texts = people.flatMap(({ id, email, key }) => [id, email, key]);
  await until(async () => (await remainsOf(stack, texts)).length === 0, {
    within: 60_000,
    what: 'nothing',
    every: 500,
  });
  expect((await objects.keys()).filter((key) => texts.includes(key))).toEqual([]);
  expect(await isAlive(caller(), bystander.session)).toBe(true);
  console.log(
    `${CYCLES} kills of both instances: ${amid} removals half done when they came; left of ${people.length} users: 0`,
  );
});

test(`a restore that races with the removal: ${ROUNDS} rounds, one wins each`, async () => {
  const outcomes = { restored: 0, removed: 0 };
  await inRounds(ROUNDS, async () => {
    const person = await uploader(uploading);
    const { id, email } = person;
    await leave(person.session);
    await due([id]);
    await pause(Math.random() * 1000);
    const replies = await Promise.all([0, 1].map((n) => caller(n)('account.restore', { email, password: PASSWORD })));
    const [won] = replies;
    expect(replies.map(({ status }) => status)).toEqual(Array(2).fill(won?.status));
    const [row] = await database('select deleted_at from users where id = ?', [id]);
    if (won?.status === 200) {
      outcomes.restored++;
      expect(row).toEqual({ deleted_at: null });
      expect(await isAlive(caller(), sessionIn(won) ?? '')).toBe(true);
      expect(await database('select user_id from removals where user_id = ?', [id])).toEqual([]);
      const kinds = await database('select kind from activity where user_id = ? order by id limit 1', [id]);
      expect(kinds).toEqual([{ kind: 'registered' }]);
    } else {
      outcomes.removed++;
      expect(won).toMatchObject({ status: 401, code: 'INVALID_CREDENTIALS' });
      expect(row).toBeUndefined();
    }
  });
  expect(Math.min(outcomes.restored, outcomes.removed)).toBeGreaterThan(0);
  console.log(`restore beside removal: restored ${outcomes.restored}, removed ${outcomes.removed}, anything else 0`);
});
