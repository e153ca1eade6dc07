import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Alert, Notice, onNotice } from '../../form/form.tsx';
import { arrivalQuery } from '../../session/arrival-query.ts';

interface Props {
  /** By `error` in the query: the result of a provider login. */
  errors: ReadonlyMap<string | null, ComponentChildren>;
  /** By `notice` in the query: what was done. */
  notices: ReadonlyMap<string | null, ComponentChildren>;
}

/** The reason why the browser was sent to this page, until the user does something else. */
export function Arrival({ errors, notices }: Props) {
  const [isOver, setOver] = useState(false);
  useEffect(() => onNotice(() => setOver(true)), []);
  if (isOver) return null;
  const error = errors.get(arrivalQuery.get('error'));
  const notice = notices.get(arrivalQuery.get('notice'));
  return (
    <>
      {error && <Alert>{error}</Alert>}
      {notice && <Notice>{notice}</Notice>}
    </>
  );
}
