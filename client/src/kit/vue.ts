import {
  type App,
  computed,
  defineComponent,
  h,
  type InjectionKey,
  inject,
  onMounted,
  onUnmounted,
  type PropType,
  type Ref,
  shallowRef,
  useId,
} from 'vue';
import type { Profile } from '../api.ts';
import { srcSet } from '../pictures.ts';
import { createSessionStore, type Session, type SessionStore, type SessionStoreOptions } from './session.ts';
import {
  buttonStyle,
  englishLabels,
  listStyle,
  menuStyle,
  pictureSizes,
  pictureStyle,
  placeStyle,
  type UserButtonLabels,
} from './user-button.ts';

export type { InitialSession, ServicePage, Session, SessionStore, SessionStoreOptions } from './session.ts';
export type { UserButtonLabels } from './user-button.ts';

const key: InjectionKey<SessionStore> = Symbol('account-client');

/** The plugin: `app.use(accountPlugin({ url }))`. On a server each request has an app, and so a store, of its own. */
export function accountPlugin(options: SessionStoreOptions | { store: SessionStore }) {
  const store = 'store' in options ? options.store : createSessionStore(options);
  return { store, install: (app: App) => void app.provide(key, store) };
}

/** The store of the plugin, with its `client`. */
export function useSessionStore(): SessionStore {
  const store = inject(key);
  if (!store) throw new Error('accountPlugin is missing');
  return store;
}

export function useSession(): Readonly<Ref<Session>> {
  const { subscribe, getSnapshot } = useSessionStore();
  const session = shallowRef(getSnapshot());
  const read = () => {
    session.value = getSnapshot();
  };
  let unsubscribe: (() => void) | undefined;
  onMounted(() => {
    unsubscribe = subscribe(read);
    read();
  });
  onUnmounted(() => unsubscribe?.());
  return session;
}

/** Null if nobody is logged in, undefined while that is unknown. */
export function useUser(): Readonly<Ref<Profile | null | undefined>> {
  const session = useSession();
  return computed(() => session.value.user);
}

/** Leads to the log-in page of the service, and from there back to `returnTo`: by default to this page. */
export function useLogIn(): (returnTo?: string) => void {
  const { pageUrl } = useSessionStore();
  return (returnTo) => location.assign(pageUrl('/login', returnTo));
}

export const useLogOut = (): (() => Promise<void>) => useSessionStore().logOut;

/** Its slot if a user is logged in. */
export const SignedIn = defineComponent((_, { slots }) => {
  const user = useUser();
  return () => user.value && slots['default']?.();
});

/** Its slot if nobody is logged in; nothing while that is unknown. */
export const SignedOut = defineComponent((_, { slots }) => {
  const user = useUser();
  return () => user.value === null && slots['default']?.();
});

/** The picture of the user, which opens a menu with the entries of the slot. It keeps its place while the session is unknown. */
export const UserButton = defineComponent(
  ({ labels }: { labels?: Partial<UserButtonLabels> | undefined }, { slots }) => {
    const { pageUrl, logOut, refresh } = useSessionStore();
    const user = useUser();
    const id = useId();
    return () => {
      const known = user.value;
      if (known === null) return undefined;
      if (!known) return h('button', { type: 'button', style: placeStyle }, [h('span', { style: pictureStyle })]);
      const { account, logOut: end } = { ...englishLabels, ...labels };
      return [
        h('button', { type: 'button', popovertarget: id, 'aria-label': known.name, style: buttonStyle }, [
          pictureOf(known),
        ]),
        h('div', { id, popover: 'auto', style: menuStyle }, [
          h('div', { style: listStyle }, [
            h('strong', known.name),
            slots['default']?.(),
            h('a', { href: pageUrl('/dashboard') }, account),
            h('button', { type: 'button', onClick: () => void logOut().catch(refresh) }, end),
          ]),
        ]),
      ];
    };
  },
  { props: { labels: Object as PropType<Partial<UserButtonLabels>> } },
);

const pictureOf = ({ avatar, avatarVariants, name }: Profile) =>
  avatar
    ? h('img', {
        src: avatar,
        srcset: srcSet({ url: avatar, variants: avatarVariants }),
        sizes: pictureSizes,
        alt: '',
        style: pictureStyle,
      })
    : h('span', { style: pictureStyle }, [...name][0]);
