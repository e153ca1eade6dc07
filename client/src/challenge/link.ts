import type { TRPCLink } from '@trpc/client';
import { observable } from '@trpc/server/observable';
import type { AppRouter } from '../trpc.ts';
import type { OnChallenge } from './on-challenge.ts';
import type { Challenge } from './solve.ts';

/** A challenge may expire while it is solved, or a busier service ask for more. */
const MAX_CHALLENGES = 3;

/** The header of a call that repeats a refused one. */
export const solutionIn = ({ context }: { context: Record<string, unknown> }): string | undefined =>
  context['challengeSolution'] as string | undefined;

/** Solves the challenge of a refused call and repeats the call. The solver is loaded by the first challenge. */
export const challengeLink =
  (onChallenge?: OnChallenge): TRPCLink<AppRouter> =>
  () =>
  ({ next, op }) =>
    observable((observer) => {
      let challenges = 0;
      let current: { unsubscribe(): void } | undefined;
      const call = (context: typeof op.context) => {
        current = next({ ...op, context }).subscribe({
          next: (value) => observer.next(value),
          complete: () => observer.complete(),
          error(error) {
            const challenge = error.data?.code === 'CHALLENGE_REQUIRED' && error.data.details?.['challenge'];
            if (!challenge || challenges++ === MAX_CHALLENGES) return observer.error(error);
            const solving = import('./solve.ts').then(({ solve }) => solve(challenge as Challenge, op.signal));
            onChallenge?.(solving.then(ignore, ignore));
            solving.then(
              (challengeSolution) => call({ ...op.context, challengeSolution }),
              // Unsolved: the caller gets the refusal.
              () => observer.error(error),
            );
          },
        });
      };
      call(op.context);
      return () => current?.unsubscribe();
    });

const ignore = () => undefined;
