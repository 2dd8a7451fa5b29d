package kipcheck;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Writes a subclass as bytecode, in which each method does only this:
 * {@code return played.invoke(this, methods[i], new Object[] {arguments})}. There are no branches, so no frames.
 */
final class ClassFile {
    /** The names of the field with the {@link InvocationHandler}, and of the static field with the methods. */
    static final String PLAYED = "kipcheckPlayed";
    static final String METHODS = "kipcheckMethods";

    private static final int JAVA_8 = 52;
    private static final int PUBLIC = 0x0001;
    private static final int STATIC = 0x0008;
    private static final int SUPER = 0x0020;
    /** The modifiers that a method keeps. */
    private static final int SEEN = Modifier.PUBLIC | Modifier.PROTECTED;
    private static final int UTF8 = 1;
    private static final int CLASS = 7;
    private static final int FIELD = 9;
    private static final int METHOD = 10;
    private static final int INTERFACE_METHOD = 11;
    private static final int NAME_AND_TYPE = 12;
    private static final String HANDLER = "java/lang/reflect/InvocationHandler";
    private static final String INVOKE = "(Ljava/lang/Object;Ljava/lang/reflect/Method;[Ljava/lang/Object;)Ljava/lang/Object;";

    private final ByteArrayOutputStream constants = new ByteArrayOutputStream();
    private final DataOutputStream pool = new DataOutputStream(constants);
    private final Map<String, Integer> numbers = new LinkedHashMap<>();
    private final String name;

    private ClassFile(String name) {
        this.name = name;
    }

    /** A subclass of that class, with the number in its name, that overrides these of its methods. */
    static byte[] below(Class<?> type, int number, List<Method> methods) throws IOException {
        return new ClassFile(internal(type) + "$Kipcheck" + number).written(type, methods);
    }

    static String descriptor(Method method) {
        return MethodType.methodType(method.getReturnType(), method.getParameterTypes()).toMethodDescriptorString();
    }

    /** The zero value of a primitive type. */
    static Object zero(Class<?> type) {
        return Array.get(Array.newInstance(type, 1), 0);
    }

    private byte[] written(Class<?> type, List<Method> methods) throws IOException {
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(body);
        out.writeShort(PUBLIC | SUPER);
        out.writeShort(type(name));
        out.writeShort(type(internal(type)));
        out.writeShort(0);
        out.writeShort(2);
        field(out, PUBLIC, PLAYED, "L" + HANDLER + ";");
        field(out, PUBLIC | STATIC, METHODS, "[Ljava/lang/reflect/Method;");
        out.writeShort(methods.size());
        for (int i = 0; i < methods.size(); i++) {
            Method each = methods.get(i);
            byte[] code = code(i, each);
            int words = 1;
            for (Class<?> parameter : each.getParameterTypes()) {
                words += words(parameter);
            }
            out.writeShort(each.getModifiers() & SEEN);
            out.writeShort(utf8(each.getName()));
            out.writeShort(utf8(descriptor(each)));
            out.writeShort(1);
            out.writeShort(utf8("Code"));
            out.writeInt(code.length + 12);
            // The most: handler, this, method, array, array, index, and a value of two words.
            out.writeShort(8);
            out.writeShort(words);
            out.writeInt(code.length);
            out.write(code);
            out.writeInt(0);
        }
        out.writeShort(0);
        ByteArrayOutputStream file = new ByteArrayOutputStream();
        DataOutputStream head = new DataOutputStream(file);
        head.writeInt(0xcafebabe);
        head.writeInt(JAVA_8);
        head.writeShort(numbers.size() + 1);
        constants.writeTo(head);
        body.writeTo(head);
        return file.toByteArray();
    }

    private void field(DataOutputStream out, int access, String field, String descriptor) throws IOException {
        out.writeShort(access);
        out.writeShort(utf8(field));
        out.writeShort(utf8(descriptor));
        out.writeShort(0);
    }

    private byte[] code(int index, Method method) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream code = new DataOutputStream(bytes);
        op(code, 0x2a); // aload_0
        op(code, 0xb4, member(FIELD, name, PLAYED, "L" + HANDLER + ";")); // getfield
        op(code, 0x2a);
        op(code, 0xb2, member(FIELD, name, METHODS, "[Ljava/lang/reflect/Method;")); // getstatic
        op(code, 0x11, index); // sipush
        op(code, 0x32); // aaload
        Class<?>[] parameters = method.getParameterTypes();
        op(code, 0x11, parameters.length);
        op(code, 0xbd, type("java/lang/Object")); // anewarray
        int local = 1;
        for (int i = 0; i < parameters.length; i++) {
            op(code, 0x59); // dup
            op(code, 0x11, i);
            load(code, parameters[i], local);
            if (parameters[i].isPrimitive()) {
                Class<?> box = box(parameters[i]);
                String valueOf = "(" + parameters[i].descriptorString() + ")" + box.descriptorString();
                op(code, 0xb8, member(METHOD, internal(box), "valueOf", valueOf)); // invokestatic
            }
            op(code, 0x53); // aastore
            local += words(parameters[i]);
        }
        op(code, 0xb9, member(INTERFACE_METHOD, HANDLER, "invoke", INVOKE)); // invokeinterface
        code.writeByte(4);
        code.writeByte(0);
        given(code, method.getReturnType());
        return bytes.toByteArray();
    }

    private static void load(DataOutputStream code, Class<?> type, int local) throws IOException {
        int load = !type.isPrimitive() ? 0x19 : type == long.class ? 0x16 : type == float.class ? 0x17
            : type == double.class ? 0x18 : 0x15;
        code.writeByte(load);
        code.writeByte(local);
    }

    private void given(DataOutputStream code, Class<?> type) throws IOException {
        if (type == void.class) {
            op(code, 0x57); // pop
            op(code, 0xb1); // return
        } else if (type.isPrimitive()) {
            Class<?> box = box(type);
            op(code, 0xc0, type(internal(box))); // checkcast
            op(code, 0xb6, member(METHOD, internal(box), type.getName() + "Value", "()" + type.descriptorString()));
            op(code, type == long.class ? 0xad : type == float.class ? 0xae : type == double.class ? 0xaf : 0xac);
        } else {
            op(code, 0xc0, type(type.isArray() ? type.descriptorString() : internal(type)));
            op(code, 0xb0); // areturn
        }
    }

    private static void op(DataOutputStream code, int operation) throws IOException {
        code.writeByte(operation);
    }

    private static void op(DataOutputStream code, int operation, int operand) throws IOException {
        code.writeByte(operation);
        code.writeShort(operand);
    }

    private static int words(Class<?> type) {
        return type == long.class || type == double.class ? 2 : 1;
    }

    private static Class<?> box(Class<?> primitive) {
        return zero(primitive).getClass();
    }

    private static String internal(Class<?> type) {
        return type.getName().replace('.', '/');
    }

    // -- constants, without duplicates

    private int utf8(String text) throws IOException {
        Integer known = numbers.get("utf8 " + text);
        if (known == null) {
            pool.writeByte(UTF8);
            pool.writeUTF(text);
            known = numbered("utf8 " + text);
        }
        return known;
    }

    private int type(String internal) throws IOException {
        return pair(CLASS, utf8(internal), 0);
    }

    private int member(int kind, String owner, String member, String descriptor) throws IOException {
        return pair(kind, type(owner), pair(NAME_AND_TYPE, utf8(member), utf8(descriptor)));
    }

    private int pair(int kind, int first, int second) throws IOException {
        String key = kind + " " + first + " " + second;
        Integer known = numbers.get(key);
        if (known == null) {
            pool.writeByte(kind);
            pool.writeShort(first);
            if (kind != CLASS) {
                pool.writeShort(second);
            }
            known = numbered(key);
        }
        return known;
    }

    private int numbered(String key) {
        numbers.put(key, numbers.size() + 1);
        return numbers.size();
    }
}
