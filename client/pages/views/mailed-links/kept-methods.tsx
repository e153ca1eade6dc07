import type { AccountNotMeOutput } from 'account-client';
import { dateTime } from '../../language/format.ts';
import { wayIn } from '../../language/provider-label.ts';
import { text } from '../../language/texts.ts';

/** The login methods left in a secured account: they are older than the disowned act, so their owner must judge. */
export function KeptMethods({ kept = [] }: Pick<AccountNotMeOutput, 'kept'>) {
  if (kept.length === 0) return null;
  return (
    <>
      <p>{text('entry.notMe.kept')}</p>
      <ul>
        {kept.map(({ method, addedAt }) => (
          <li key={`${method} ${addedAt}`}>
            {text('entry.notMe.keptMethod', {
              way: method === 'totp' ? text('entry.notMe.app') : wayIn(method),
              time: dateTime(addedAt),
            })}
          </li>
        ))}
      </ul>
    </>
  );
}
