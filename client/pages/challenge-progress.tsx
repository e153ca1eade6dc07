import { useEffect, useState } from 'preact/hooks';
import { text } from './language/texts.ts';

/** A proof of work that takes longer than this is announced. */
const SILENT_MS = 1000;
const BEGUN = 'challenge-begun';

/** Called by the client when a call waits for a proof of work, with the promise of its end. */
export const announceChallenge = (end: Promise<void>): void =>
  void dispatchEvent(new CustomEvent(BEGUN, { detail: end }));

/** A line about a proof of work that is slow. Empty before, so that screen readers read it out. */
export function ChallengeProgress() {
  const [running, setRunning] = useState(0);
  const [slow, setSlow] = useState(0);
  useEffect(() => {
    const begin = (event: Event) => {
      let isSlow = false;
      const timer = setTimeout(() => {
        isSlow = true;
        setSlow((count) => count + 1);
      }, SILENT_MS);
      setRunning((count) => count + 1);
      void (event as CustomEvent<Promise<void>>).detail.then(() => {
        clearTimeout(timer);
        if (isSlow) setSlow((count) => count - 1);
        setRunning((count) => count - 1);
      });
    };
    addEventListener(BEGUN, begin);
    return () => removeEventListener(BEGUN, begin);
  }, []);
  if (running === 0) return null;
  return (
    <p class="hint" role="status">
      {slow > 0 && text('common.challenge')}
    </p>
  );
}
