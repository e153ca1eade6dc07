import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { arrivalQuery } from '../arrival-query.ts';
import { Alert, Notice, onNotice } from '../form/form.tsx';

interface Props {
  /** By `error` in the address: the outcome at an identity provider. */
  errors: ReadonlyMap<string | null, ComponentChildren>;
  /** By `notice` in the address: what has been done. */
  notices: ReadonlyMap<string | null, ComponentChildren>;
}

/** Why the browser was sent to this page, until something else is done there. */
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
