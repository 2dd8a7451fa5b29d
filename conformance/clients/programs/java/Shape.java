package kipcheck;

import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;

/** A generated class, or a struct in one: converts JSON to an object of it and back, by names of fields. */
final class Shape {
    static final String UNKNOWN_TAGS = "_unknownTaggedFields";

    private final Class<?> type;
    private final Map<Class<?>, Shape> known;
    private final Map<String, Member> members = new LinkedHashMap<>();
    private final Map<Integer, List<Member>> present = new HashMap<>();
    private final Constructor<?> constructor;

    private Shape(Class<?> type, Map<Class<?>, Shape> known) {
        this.type = type;
        this.known = known;
        try {
            constructor = type.getDeclaredConstructor();
        } catch (NoSuchMethodException none) {
            throw new Release.Unsupported(type.getName() + " is not a generated class");
        }
        for (Field field : type.getDeclaredFields()) {
            boolean link = field.getName().equals("next") || field.getName().equals("prev");
            boolean own = !Modifier.isStatic(field.getModifiers()) && !field.getName().startsWith("_");
            // The links of a hashed collection are private fields without setters.
            if (own && !(link && setter(field) == null)) {
                members.put(field.getName(), new Member(field));
            }
        }
    }

    static Shape of(Class<?> type, Map<Class<?>, Shape> known) {
        Shape shape = known.get(type);
        if (shape == null) {
            shape = new Shape(type, known);
            known.put(type, shape);
        }
        return shape;
    }

    /** An object with these fields; others keep their default, unknown ones are refused. */
    Object read(Map<String, Object> value) throws Throwable {
        Object made = Release.create(constructor);
        for (Map.Entry<String, Object> entry : value.entrySet()) {
            if (entry.getKey().equals(UNKNOWN_TAGS)) {
                readTags(made, Values.list(entry.getValue()));
                continue;
            }
            Member member = members.get(entry.getKey());
            if (member == null) {
                throw new Release.Unsupported(type.getSimpleName() + " has no field " + entry.getKey(), Claims.FIELDS);
            }
            Release.invoke(member.setter, made, member.read(entry.getValue()));
        }
        return made;
    }

    /** The fields of this version, in the order of the class. */
    Map<String, Object> print(Object made, int version) throws Throwable {
        Map<String, Object> value = new LinkedHashMap<>();
        for (Member member : present(version)) {
            value.put(member.name, member.print(member.field.get(made), version));
        }
        List<Object> tags = new ArrayList<>();
        for (Object tag : unknownTags(made)) {
            Map<String, Object> one = new LinkedHashMap<>();
            // As on the wire, unsigned.
            one.put("tag", (Integer) Release.call(tag, "tag") & 0xffffffffL);
            one.put("data", Values.hex((byte[]) Release.call(tag, "data")));
            tags.add(one);
        }
        if (!tags.isEmpty()) {
            value.put(UNKNOWN_TAGS, tags);
        }
        return value;
    }

    private void readTags(Object made, List<Object> tags) throws Throwable {
        for (Object tag : tags) {
            Map<String, Object> one = Values.object(tag);
            Class<?> raw = type.getClassLoader().loadClass("org.apache.kafka.common.protocol.types.RawTaggedField");
            unknownTags(made).add(Release.create(raw, Values.int32(one.get("tag")), Values.bytes(one.get("data"))));
        }
    }

    @SuppressWarnings("unchecked")
    private List<Object> unknownTags(Object made) throws Throwable {
        return (List<Object>) Release.call(made, "unknownTaggedFields");
    }

    /** From the class's own schema of that version, which spells names with underscores. */
    private List<Member> present(int version) throws Throwable {
        List<Member> found = present.get(version);
        if (found == null) {
            Object schemas = Release.need(type, "SCHEMAS").get(null);
            Object schema = version >= 0 && version < Array.getLength(schemas) ? Array.get(schemas, version) : null;
            if (schema == null) {
                throw new Release.Unsupported(type.getSimpleName() + " has no version " + version);
            }
            List<String> names = new ArrayList<>();
            for (Object bound : (Object[]) Release.call(schema, "fields")) {
                Object field = Release.get(bound, "def");
                Object kind = Release.get(field, "type");
                if (kind.getClass().getSimpleName().equals("TaggedFields")) {
                    for (Object tagged : ((Map<?, ?>) Release.need(kind.getClass(), "fields").get(kind)).values()) {
                        names.add(plain((String) Release.get(tagged, "name")));
                    }
                } else {
                    names.add(plain((String) Release.get(field, "name")));
                }
            }
            found = new ArrayList<>();
            for (Member member : members.values()) {
                if (names.remove(plain(member.name))) {
                    found.add(member);
                }
            }
            if (!names.isEmpty()) {
                throw new IllegalStateException(type.getSimpleName() + " v" + version + " has fields " + names);
            }
            present.put(version, found);
        }
        return found;
    }

    private static String plain(String name) {
        return name.replace("_", "").toLowerCase(Locale.ROOT);
    }

    private Method setter(Field field) {
        String name = "set" + field.getName().substring(0, 1).toUpperCase(Locale.ROOT) + field.getName().substring(1);
        for (Method each : type.getDeclaredMethods()) {
            if (each.getName().equals(name) && each.getParameterCount() == 1) {
                return each;
            }
        }
        return null;
    }

    private final class Member {
        final String name;
        final Field field;
        final Method setter;
        /** For an array, the shape of its elements. */
        final Class<?> element;

        Member(Field field) {
            this.name = field.getName();
            this.field = field;
            this.setter = setter(field);
            if (setter == null) {
                throw new IllegalStateException(type.getName() + "." + name + " has no setter");
            }
            field.setAccessible(true);
            setter.setAccessible(true);
            this.element = element(field);
        }

        private Class<?> element(Field field) {
            if (!Collection.class.isAssignableFrom(field.getType())) {
                return null;
            }
            ParameterizedType generic = (ParameterizedType) (field.getGenericType() instanceof ParameterizedType
                ? field.getGenericType() : field.getType().getGenericSuperclass());
            return (Class<?>) generic.getActualTypeArguments()[0];
        }

        @SuppressWarnings("unchecked")
        Object read(Object value) throws Throwable {
            if (element == null || value == null) {
                return Shape.this.readOne(field.getType(), value);
            }
            List<Object> given = Values.list(value);
            Collection<Object> out = field.getType().isInterface()
                ? new ArrayList<>(given.size())
                : (Collection<Object>) Release.create(field.getType(), given.size());
            for (Object each : given) {
                if (!out.add(Shape.this.readOne(element, each))) {
                    throw new IllegalStateException(name + " takes no such element");
                }
            }
            return out;
        }

        Object print(Object made, int version) throws Throwable {
            if (element == null || made == null) {
                return Shape.this.printOne(made, version);
            }
            List<Object> out = new ArrayList<>();
            for (Object each : (Collection<?>) made) {
                out.add(Shape.this.printOne(each, version));
            }
            return out;
        }
    }

    private Object readOne(Class<?> wanted, Object value) throws Throwable {
        if (wanted == boolean.class) {
            if (!(value instanceof Boolean)) {
                throw new IllegalArgumentException("not a boolean");
            }
            return value;
        }
        if (wanted == byte.class || wanted == Byte.class) {
            return (byte) Values.integer(value, Byte.MIN_VALUE, Byte.MAX_VALUE);
        }
        if (wanted == short.class || wanted == Short.class) {
            return (short) Values.integer(value, Short.MIN_VALUE, Short.MAX_VALUE);
        }
        if (wanted == int.class || wanted == Integer.class) {
            return Values.int32(value);
        }
        if (wanted == long.class || wanted == Long.class) {
            return Values.integer(value, Long.MIN_VALUE, Long.MAX_VALUE);
        }
        if (wanted == double.class) {
            return ((Number) value).doubleValue();
        }
        if (wanted == String.class) {
            return Values.text(value);
        }
        if (value == null) {
            return null;
        }
        if (wanted == byte[].class) {
            return Values.bytes(value);
        }
        if (wanted == ByteBuffer.class) {
            return ByteBuffer.wrap(Values.bytes(value));
        }
        if (wanted == UUID.class) {
            return UUID.fromString(Values.text(value));
        }
        switch (wanted.getSimpleName()) {
            case "Uuid":
                UUID uuid = UUID.fromString(Values.text(value));
                return Release.create(wanted, uuid.getMostSignificantBits(), uuid.getLeastSignificantBits());
            case "BaseRecords":
            case "MemoryRecords":
                // Newer releases have both classes in a package of internals.
                String name = wanted.getPackage().getName() + ".MemoryRecords";
                Class<?> records = wanted.getClassLoader().loadClass(name);
                return Release.callStatic(records, "readableRecords", ByteBuffer.wrap(Values.bytes(value)));
            default:
                return of(wanted, known).read(Values.object(value));
        }
    }

    private Object printOne(Object made, int version) throws Throwable {
        if (made == null || made instanceof String || made instanceof Number || made instanceof Boolean) {
            return made;
        }
        if (made instanceof byte[]) {
            return Values.hex((byte[]) made);
        }
        if (made instanceof ByteBuffer) {
            return Values.hex((ByteBuffer) made);
        }
        switch (made.getClass().getSimpleName()) {
            case "UUID":
                return made.toString();
            case "Uuid":
                return new UUID((Long) Release.call(made, "getMostSignificantBits"),
                    (Long) Release.call(made, "getLeastSignificantBits")).toString();
            case "MemoryRecords":
                return Values.hex((ByteBuffer) Release.call(made, "buffer"));
            default:
                return of(made.getClass(), known).print(made, version);
        }
    }
}
