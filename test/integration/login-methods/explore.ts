/** A system whose states can be stored, restored and compared. */
export interface Explored<State> {
  /** The current state, and a text that is the same for all states in which the same can happen. */
  snapshot(): { state: State; key: string };
  restore(state: State): Promise<void>;
}

/** Rejects with a refusal of the service, which changes nothing. */
export interface Act<World> {
  name: string;
  /** Whether it makes sense in the current state. */
  isPossible(world: World): boolean;
  perform(world: World): Promise<unknown>;
}

export interface Exploration {
  states: number;
  transitions: number;
  /** How many states were new after each number of acts. */
  perDepth: number[];
  /** The shortest sequences of acts that break the rule, with the problem at the end. */
  violations: string[][];
  /** How often each act changed a state. */
  effects: Map<string, number>;
}

interface Options<World> {
  world: World;
  acts: readonly Act<World>[];
  depth: number;
  /** What is wrong with the current state. */
  problemIn(world: World): Promise<string | undefined>;
  isRefusal(error: unknown): boolean;
  /** The search ends after this many. */
  maxViolations?: number;
}

interface Node<State> {
  state: State;
  trace: string[];
}

/** Visits all states within `depth` acts of the current one, breadth first: each is reached by a shortest sequence. */
export async function explore<State, World extends Explored<State>>({
  world,
  acts,
  depth,
  problemIn,
  isRefusal,
  maxViolations = 1,
}: Options<World>): Promise<Exploration> {
  const root = world.snapshot();
  const seen = new Set([root.key]);
  const effects = new Map(acts.map(({ name }) => [name, 0]));
  const found: Exploration = { states: 1, transitions: 0, perDepth: [], violations: [], effects };
  let level: Node<State>[] = [{ state: root.state, trace: [] }];

  /** Undefined for a state seen before, and for one that breaks the rule: nothing more is learnt behind it. */
  const follow = async ({ state, trace }: Node<State>, { name, perform }: Act<World>) => {
    await world.restore(state);
    try {
      await perform(world);
    } catch (error) {
      if (isRefusal(error)) return undefined;
      throw new Error(`${[...trace, name].join(', ')} failed`, { cause: error });
    }
    found.transitions += 1;
    const { state: next, key } = world.snapshot();
    if (seen.has(key)) return undefined;
    seen.add(key);
    effects.set(name, (effects.get(name) ?? 0) + 1);
    const problem = await problemIn(world);
    if (problem === undefined) return { state: next, trace: [...trace, name] };
    found.violations.push([...trace, name, problem]);
    return undefined;
  };

  for (let length = 0; length < depth && level.length > 0; length++) {
    const next: Node<State>[] = [];
    for (const node of level) {
      await world.restore(node.state);
      for (const act of acts.filter((act) => act.isPossible(world))) {
        const reached = await follow(node, act);
        if (reached) next.push(reached);
        if (found.violations.length >= maxViolations) return { ...found, states: seen.size };
      }
    }
    found.perDepth.push(next.length);
    level = next;
  }
  return { ...found, states: seen.size };
}
