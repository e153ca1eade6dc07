import { useState } from 'preact/hooks';
import { type Refusal, refusalIn } from '../api.ts';

/** The action of a button: one at a time, with its outcome. */
export function useAction() {
  const [busy, setBusy] = useState('');
  const [refusal, setRefusal] = useState<Refusal>();
  const [notice, setNotice] = useState<string>();

  /** `work` resolves to the success message. */
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
    /** The id of the running action; empty if none. */
    busy,
    refusal,
    notice,
    act,
  };
}
