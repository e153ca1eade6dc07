'use client';

import {
  createContext,
  type ReactNode,
  useContext,
  useEffect,
  useId,
  useRef,
  useState,
  useSyncExternalStore,
} from 'react';
import type { Profile } from '../api.ts';
import { srcSet } from '../pictures.ts';
import {
  createSessionStore,
  differenceFrom,
  type Session,
  type SessionStore,
  type SessionStoreOptions,
} from './session.ts';
import {
  buttonStyle,
  englishLabels,
  frameStyle,
  initialOf,
  isLoaded,
  listStyle,
  loadingStyle,
  menuStyle,
  pictureSizes,
  pictureStyle,
  placeStyle,
  type UserButtonLabels,
} from './user-button.ts';

export type {
  Impersonation,
  InitialSession,
  ServicePage,
  Session,
  SessionStore,
  SessionStoreOptions,
} from './session.ts';
export type { UserButtonLabels } from './user-button.ts';

const Store = createContext<SessionStore | undefined>(undefined);

type AccountProviderProps = { children?: ReactNode } & (SessionStoreOptions | { store: SessionStore });

/** Around everything that knows the user. On a server each request has a provider, and so a store, of its own. */
export function AccountProvider({ children, ...options }: AccountProviderProps) {
  const [store] = useState(() => ('store' in options ? options.store : createSessionStore(options)));
  const rendered = 'store' in options ? undefined : options.initialSession;
  /** The difference that a check has confirmed, or is about to. */
  const asked = useRef('');
  // A server may have rendered the page again, such as after a login in an action: the check decides who is logged in.
  useEffect(() => {
    if (rendered === undefined) return;
    const difference = differenceFrom(rendered, store.getSnapshot());
    if (difference === '' || difference === asked.current) return;
    asked.current = difference;
    void store.refresh().then((session) => {
      asked.current = differenceFrom(rendered, session);
    });
  });
  return <Store value={store}>{children}</Store>;
}

/** The store of the provider, with its `client`. */
export function useSessionStore(): SessionStore {
  const store = useContext(Store);
  if (!store) throw new Error('AccountProvider is missing');
  return store;
}

export function useSession(): Session {
  const { subscribe, getSnapshot, getServerSnapshot } = useSessionStore();
  return useSyncExternalStore(subscribe, getSnapshot, getServerSnapshot);
}

/** Null if nobody is logged in, undefined while that is unknown. */
export const useUser = (): Profile | null | undefined => useSession().user;

/** Leads to the log-in page of the service, and from there back to `returnTo`: by default to this page. */
export function useLogIn(): (returnTo?: string) => void {
  const { pageUrl } = useSessionStore();
  return (returnTo) => location.assign(pageUrl('/login', returnTo));
}

export const useLogOut = (): (() => Promise<void>) => useSessionStore().logOut;

/** Its children if a user is logged in. */
export const SignedIn = ({ children }: { children?: ReactNode }): ReactNode => useUser() && children;

/** Its children if nobody is logged in; nothing while that is unknown. */
export const SignedOut = ({ children }: { children?: ReactNode }): ReactNode => useUser() === null && children;

interface UserButtonProps {
  labels?: Partial<UserButtonLabels> | undefined;
  /** More entries of the menu. */
  children?: ReactNode;
}

/** The picture of the user, which opens a menu. It keeps its place while the session is unknown. */
export function UserButton({ labels, children }: UserButtonProps) {
  const { pageUrl, logOut, refresh } = useSessionStore();
  const user = useUser();
  const id = useId();
  const [hasFailed, setFailed] = useState(false);
  const { account, logOut: end, logOutFailed } = { ...englishLabels, ...labels };
  const tryLogOut = () => {
    setFailed(false);
    logOut().catch(() => {
      setFailed(true);
      return refresh();
    });
  };
  if (user === null) return null;
  if (!user)
    return (
      <button type="button" style={placeStyle}>
        <span style={pictureStyle} />
      </button>
    );
  return (
    <>
      <button type="button" popoverTarget={id} aria-label={user.name} style={buttonStyle}>
        {user.avatar ? <Picture {...user} /> : <span style={pictureStyle}>{initialOf(user.name)}</span>}
      </button>
      <div id={id} popover="auto" style={menuStyle}>
        <div style={listStyle}>
          <strong>{user.name}</strong>
          {children}
          <a href={pageUrl('/dashboard')}>{account}</a>
          <button type="button" onClick={tryLogOut}>
            {end}
          </button>
          {hasFailed && <span role="alert">{logOutFailed}</span>}
        </div>
      </div>
    </>
  );
}

function Picture({ avatar, avatarVariants, name }: Profile) {
  const [isShown, setShown] = useState(false);
  return (
    <span style={frameStyle}>
      {!isShown && initialOf(name)}
      <img
        ref={(image) => {
          if (image && isLoaded(image)) setShown(true);
        }}
        onLoad={() => setShown(true)}
        src={avatar}
        srcSet={srcSet({ url: avatar, variants: avatarVariants })}
        sizes={pictureSizes}
        alt=""
        style={loadingStyle}
      />
    </span>
  );
}
