import { useEffect, useState } from 'preact/hooks';
import { type Refusal, refusalIn } from './api.ts';

interface PageOf<Item> {
  data: Item[];
  /** Only where more follow. */
  nextCursor?: string | undefined;
}

/** A list that is read a page at a time. Without `first` the first page is read too. */
export function usePages<Item>(read: (cursor: string | undefined) => Promise<PageOf<Item>>, first?: PageOf<Item>) {
  const [items, setItems] = useState(first?.data ?? []);
  /** Where the next page begins; null after the last one. */
  const [next, setNext] = useState(first && (first.nextCursor ?? null));
  const [isBusy, setBusy] = useState(!first);
  const [refusal, setRefusal] = useState<Refusal>();

  const readMore = async () => {
    setBusy(true);
    setRefusal(undefined);
    try {
      const { data, nextCursor = null } = await read(next ?? undefined);
      setItems((shown) => [...shown, ...data]);
      setNext(nextCursor);
    } catch (error) {
      setRefusal(refusalIn(error));
    } finally {
      setBusy(false);
    }
  };
  useEffect(() => {
    if (!first) void readMore();
  }, []);

  return {
    /** What was read so far. */
    items,
    hasMore: next !== null,
    isBusy,
    refusal,
    readMore,
  };
}
