import { NetworkError } from 'account-client';
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { type Refusal, refusalIn } from '../api.ts';
import { loadAccountIcons } from '../icons/icon.tsx';
import { OneMoment } from './one-moment.tsx';
import { Unreachable } from './unreachable.tsx';

/** A page with a script of its own, loaded when it is opened. */
export const inOwnScript = (load: () => Promise<ComponentType>): ComponentType =>
  function InOwnScript() {
    const [View, setView] = useState<ComponentType>();
    const [refusal, setRefusal] = useState<Refusal>();
    useEffect(() => {
      Promise.all([load(), loadAccountIcons()]).then(
        ([Loaded]) => setView(() => Loaded),
        () => setRefusal(refusalIn(new NetworkError('The script of the page did not arrive'))),
      );
    }, []);
    if (refusal) return <Unreachable refusal={refusal} />;
    return View ? <View /> : <OneMoment />;
  };
