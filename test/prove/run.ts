import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { asScenario, type redisGroups, startClusterStack } from '../cluster/stack.ts';
import { type Load, mailsSent, startLoad, storedOutcome, unlimited } from '../faults/load.ts';
import { deliveryViolations } from '../rig/observe/deliveries.ts';
import type { ReadEvent } from '../rig/observe/events.ts';
import { runCommand } from '../rig/process/command.ts';
import type { DatabaseCluster } from '../rig/servers/database-cluster.ts';
import { startGalera } from '../rig/servers/galera.ts';
import { findFlavour } from '../rig/servers/mysql.ts';
import { type CutProxy, startCutProxy } from '../rig/servers/proxy.ts';
import { type Receiver, startReceiver } from '../rig/servers/receiver.ts';
import { stopAll } from '../rig/servers/redis-cluster.ts';
import { until } from '../rig/until.ts';
import type { Evidence } from './evidence.ts';
import { clockEnv, type ProvenStack } from './faults.ts';
import { type Figures, figuresOf, isRefused, QUIET_MS, type Timed } from './figures.ts';
import { startTokenLoad, type TokenLoad } from './tokens.ts';

const USERS = 12;
const HOLDERS = 6;
const PACE_MS = 150;
/** The system has recovered if this many calls in a row succeed in QUIET_MS. */
const CALM_CALLS = 100;

/** For mails and deliveries whose last tries failed: they wait for minutes. */
const SETTLED_MS = 180_000;

const TOKEN = 'reader-token';
const SERVICE_TOKENS = `reader:${createHash('sha256').update(TOKEN).digest('hex')}`;

export type Faults = typeof import('./faults.ts').faults;

export interface PassPlan {
  redis: keyof typeof redisGroups;
  /** The directory of the release that the instances start with. */
  tree?: string | undefined;
  /** First, once. */
  first: Faults;
  /** Each at least once, and again in turn until the time is over. */
  faults: Faults;
  /** By performance.now(). */
  until: number;
}

export interface Pass {
  redis: string;
  rows: ({ fault: string } & Figures)[];
  evidence: Evidence;
  ms: number;
}

/** One set of clusters, its load, its faults, and what is there in the end. */
export async function runPass(plan: PassPlan): Promise<Pass> {
  const relays: CutProxy[] = [];
  const env = { ...unlimited, ...clockEnv, SERVICE_TOKENS, WEBHOOK_ALLOW: '127.0.0.0/8', LOG_LEVEL: 'error' };
  const clusters = await startClusterStack(plan.redis, env, { tree: plan.tree, startDatabase: () => relayed(relays) });
  const stack = { ...clusters, relays };
  const receivers: Receiver[] = [];
  try {
    const hooks = [await addReceiver(stack, receivers, plan.tree), await addReceiver(stack, receivers, plan.tree)];
    const { proxy, smtp } = stack;
    const tokens = await startTokenLoad(asScenario(stack), { users: HOLDERS, paceMs: PACE_MS });
    const load = startLoad({ stack: { services: [proxy], smtp } }, { users: USERS, paceMs: PACE_MS });
    const began = performance.now();
    const known = { crashes: [] as number[], forgotten: [] as { from: number; to: number }[] };
    const rows: Pass['rows'] = [];
    await calm(load, tokens, began);
    for (const [fault, cause] of order(plan)) {
      rows.push({ fault, ...(await happens(fault, cause, { stack, load, tokens, known })) });
    }
    await Promise.all([load.finish(), tokens.finish()]);
    const ms = performance.now() - began;
    await stack.cluster.settled();
    const { query } = stack.databases[0] ?? {};
    if (!query) throw new Error('no database');
    const unnumbered = 'select id from activity where number is null limit 1';
    await until(async () => (await query(unnumbered)).length === 0, { within: 60_000, what: 'every number' });
    await mailsSent(query, SETTLED_MS).catch(async () => {
      // The checker says whether a promised one is among them.
      console.table(await query("select id, kind, attempts, due_at, created_at from outbox where state = 'pending'"));
    });
    const outcome = await storedOutcome({ stack: { database: query, smtp }, objects: stack.s3 }, known);
    const ofLoad = new Set(load.history.map(({ user }) => user));
    const mails = outcome.mails.filter(({ to: [to = ''] }) => ofLoad.has(to));
    const users = await query<{ id: string; email: string }>('select id, email from users');
    const events = await streamOf(proxy.url);
    await delivered(events, hooks);
    const evidence = {
      history: load.history,
      outcome: { ...outcome, mails },
      uses: tokens.uses,
      events,
      userIds: new Map(users.map(({ id, email }) => [email, id])),
      receivers: hooks.map(({ receiver, secret }) => ({ received: receiver.received, secret })),
    };
    return { redis: plan.redis, rows, evidence, ms };
  } finally {
    for (const receiver of receivers) await receiver.stop();
    await stack.stop();
  }
}

function* order({ first, faults, until: end }: PassPlan): Generator<[string, Faults[string]]> {
  yield* Object.entries(first);
  const round = Object.entries(faults);
  yield* round;
  for (let i = 0; round.length > 0 && performance.now() < end; i++)
    yield round[i % round.length] as [string, Faults[string]];
}

/** Galera, with a relay in front of each node. */
async function relayed(relays: CutProxy[]): Promise<DatabaseCluster> {
  const cluster = await startGalera(await findFlavour(['mariadbd']));
  for (const { port } of cluster.nodes) relays.push(await startCutProxy(port));
  const url = cluster.nodes.reduce((all, { port }, i) => all.replace(`:${port}`, `:${relays[i]?.port}`), cluster.url);
  const stop = async () => {
    for (const relay of relays) {
      relay.heal();
      await relay.stop();
    }
    // Killed: a node without a majority does not end on SIGTERM.
    await stopAll(cluster.nodes);
  };
  return { ...cluster, url, stop };
}

async function addReceiver({ services, certificate }: ProvenStack, receivers: Receiver[], tree: string | undefined) {
  const tls = { cert: readFileSync(certificate.cert), key: readFileSync(certificate.key) };
  const receiver = await startReceiver({ tls });
  receivers.push(receiver);
  const args = ['add', `https://localhost:${receiver.port}/hook`, '--json'];
  const { stdout } = await runCommand('webhook', { ...services[0]?.env }, args, tree);
  return { receiver, secret: JSON.parse(stdout).secret as string };
}

interface Running {
  stack: ProvenStack;
  load: Load;
  tokens: TokenLoad;
  known: { crashes: number[]; forgotten: { from: number; to: number }[] };
}

async function happens(
  fault: string,
  cause: Faults[string],
  { stack, load, tokens, known }: Running,
): Promise<Figures> {
  const { inject, repair, writesLostSince } = await cause(stack, load);
  const began = performance.now();
  await inject();
  const injected = performance.now();
  if (writesLostSince !== undefined) known.forgotten.push({ from: writesLostSince, to: injected });
  await calm(load, tokens, injected);
  const repaired = performance.now();
  await repair?.();
  known.crashes.push(began, injected, repaired, performance.now());
  await calm(load, tokens, performance.now());
  const over = performance.now();
  await load.tryEnded(writesLostSince ?? began);
  const figures = figuresOf(allCalls(load, tokens), { began, injected, over });
  const refused = [...load.history, ...tokens.uses].filter((call) => call.end >= began && isRefused(call));
  const byAction = Map.groupBy(refused, ({ action, status = 'no answer' }) => `${action} ${status}`);
  console.log(
    fault,
    JSON.stringify(figures),
    Object.fromEntries([...byAction].map(([kind, calls]) => [kind, calls.length])),
  );
  return figures;
}

const allCalls = ({ history }: Load, { uses }: TokenLoad): Timed[] => [...history, ...uses];

/** On a machine that does other work too, the calls of a while need minutes. */
const CALM_MS = 600_000;

/** Resolves once the calls of a while have succeeded. */
async function calm(load: Load, tokens: TokenLoad, since: number): Promise<void> {
  const isCalm = () => {
    const now = performance.now();
    const recent = allCalls(load, tokens).filter(({ end }) => end > Math.max(since, now - QUIET_MS));
    return now > since + QUIET_MS && recent.length >= CALM_CALLS && !recent.some(isRefused);
  };
  await until(isCalm, { within: CALM_MS, every: 200, what: 'the return to normal' });
}

/** The events so far, as a reader of the feed gets them. */
async function streamOf(url: string): Promise<ReadEvent[]> {
  const read: ReadEvent[] = [];
  for (let next = 0; ; ) {
    const response = await fetch(`${url}/api/events?${new URLSearchParams({ after: `${next}`, limit: '100' })}`, {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    if (response.status !== 200) {
      await pause(200);
      continue;
    }
    const page = (await response.json()) as { data: ReadEvent[]; next: number };
    if (page.data.length === 0) return read;
    read.push(...page.data);
    next = page.next;
  }
}

/** Resolves once each receiver has every event, or no more come: what is missing then is for the checker. */
async function delivered(events: ReadEvent[], hooks: { receiver: Receiver; secret: string }[]): Promise<void> {
  const stored = events.map(({ id, number, data }) => ({ id, number, userId: data.userId }));
  const isDone = () =>
    hooks.every(({ receiver: { received }, secret }) => deliveryViolations(stored, received, secret).length === 0);
  await until(isDone, { within: SETTLED_MS, every: 2000, what: 'every event at the receivers' }).catch(() => undefined);
}
