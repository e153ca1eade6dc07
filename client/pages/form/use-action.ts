import { useState } from 'preact/hooks';
import { type Refusal, refusalIn } from '../api.ts';

/** What the press of a button does: one thing at a time, and how it went. */
export function useAction() {
  const [busy, setBusy] = useState('');
  const [refusal, setRefusal] = useState<Refusal>();
  const [notice, setNotice] = useState<string>();

  /** `work` resolves to what the user reads then. */
  const act = async (what: string, work: () => Promise<string | undefined>): Promise<void> => {
    if (busy) return;
    setRefusal(undefined);
    setNotice(undefined);
    setBusy(what);
    try {
      setNotice(await work());
    } catch (error) {
      setRefusal(refusalIn(error));
    } finally {
      setBusy('');
    }
  };

  return {
    /** What is being done; empty if nothing. */
    busy,
    refusal,
    notice,
    act,
  };
}
