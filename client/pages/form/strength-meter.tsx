import { useEffect, useRef, useState } from 'preact/hooks';
import { wordsAbout } from '../../../server/shared/password-words.ts';
import { language, text } from '../language/texts.ts';
import { settings } from '../settings.ts';

type Score = 0 | 1 | 2 | 3 | 4;

/** The lowest score that the service accepts; 0: it does not estimate. */
const needed = settings.passwordStrength ?? 0;

interface Props {
  password: string;
  /** Whether the field has the focus. */
  isEntered: boolean;
  /** What the user has entered about herself. */
  about: readonly string[];
}

/**
 * How hard the password is to guess. The estimate is the service's, made in a worker. It is loaded when the field gets
 * the focus: it is large.
 */
function Meter({ password, isEntered, about }: Props) {
  const [score, setScore] = useState<Score>();
  const worker = useRef<Worker>(undefined);
  useEffect(() => () => worker.current?.terminate(), []);
  const wasEntered = useRef(false);
  wasEntered.current ||= isEntered;
  useEffect(() => {
    // Until the next estimate the one before stays: an empty live region would be read at every character.
    if (password === '') setScore(undefined);
    if (password === '' && !wasEntered.current) return;
    worker.current ??= new Worker(new URL('./strength-worker.ts', import.meta.url), { type: 'module' });
    // Answers to earlier texts arrive too.
    worker.current.onmessage = ({ data }: MessageEvent<{ password: string; score: Score }>) => {
      if (data.password === password && password !== '') setScore(data.score);
    };
    worker.current.postMessage({ password, words: wordsAbout(...about, settings.brand.name), language });
  }, [password, about.join('\n'), wasEntered.current]);
  const label = score === undefined ? '' : text(`common.passwordStrength.level${score}`);
  return (
    <p class="strength" data-enough={score !== undefined && score >= needed}>
      <meter
        min={0}
        max={4}
        low={needed}
        optimum={4}
        value={score ?? 0}
        aria-label={text('common.passwordStrength.label')}
      />
      <span role="status">{label}</span>
    </p>
  );
}

export const StrengthMeter = (props: Props) => (needed > 0 ? <Meter {...props} /> : null);
