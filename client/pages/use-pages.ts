import { useEffect, useState } from 'preact/hooks';
import { type Refusal, refusalIn } from './api.ts';

interface PageOf<Item> {
  data: Item[];
  /** Set if there is a next page. */
  nextCursor?: string | undefined;
}

/** A list that is loaded page by page. Without `first` it loads the first page too. */
export function usePages<Item>(read: (cursor: string | undefined) => Promise<PageOf<Item>>, first?: PageOf<Item>) {
  const [items, setItems] = useState(first?.data ?? []);
  /** The cursor of the next page; null after the last one. */
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
    /** The rows loaded so far. */
    items,
    hasMore: next !== null,
    isBusy,
    refusal,
    readMore,
  };
}
